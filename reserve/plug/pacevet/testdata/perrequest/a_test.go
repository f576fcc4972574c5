package a

import (
	"testing"

	"golang.org/x/time/rate"
)

func TestA(t *testing.T) {
	for range 3 {
		lim := rate.NewLimiter(1, 1)
		lim.Allow()
	}
}
