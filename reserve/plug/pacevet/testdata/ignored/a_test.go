package a

import (
	"testing"

	"golang.org/x/time/rate"
)

func TestA(t *testing.T) {
	rate.NewLimiter(1, 1).Wait(t.Context()) // want `the error of Wait is ignored`
	rate.NewLimiter(1, 1).Allow()           // want `the result of Allow is ignored`
}

func BenchmarkA(b *testing.B) {
	lim := rate.NewLimiter(1, 1)
	for b.Loop() {
		lim.Allow()
	}
}
