package a

import (
	"testing"

	"github.com/nextfree/pace"
	"golang.org/x/time/rate"
)

func TestA(t *testing.T) { rate.NewLimiter(1, 1).Reserve() } // want `Reserve.s reservation is dropped`

func TestError(t *testing.T) {
	if _, err := pace.Must(pace.NewBursty(1)).Reserve(t.Context(), 0); err == nil {
		t.Fatal()
	}
}
