package pacevet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/nextfree/pace/reserve/plug/pacevet"
)

// Each analyzer names what its folder's comments say, and nothing else there.
func TestAnalyzers(t *testing.T) {
	for _, a := range pacevet.Analyzers() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), a, "./"+a.Name)
		})
	}
}

func TestValid(t *testing.T) {
	if err := analysis.Validate(pacevet.Analyzers()); err != nil {
		t.Fatal(err)
	}
}
