package pacevet_test

import (
	"os/exec"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/nextfree/pace/reserve/plug/pacevet"
)

// Each analyzer names what its folder's comments say, and nothing else there.
func TestAnalyzers(t *testing.T) {
	// Analysistest looks for no module outside the cache, which may be empty.
	download := exec.Command("go", "list", "-deps", "-test", "./...")
	download.Dir = analysistest.TestData()
	if out, err := download.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, a := range pacevet.Analyzers() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), a, "./"+a.Name)
		})
	}
}

func TestValid(t *testing.T) {
	if err := analysis.Validate(pacevet.Analyzers()); err != nil {
		t.Fatal(err)
	}
}
