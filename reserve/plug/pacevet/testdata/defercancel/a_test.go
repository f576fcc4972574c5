package a

import (
	"testing"

	"golang.org/x/time/rate"
)

func TestA(t *testing.T) {
	r := rate.NewLimiter(1, 1).Reserve()
	defer r.Cancel() // want `a deferred Cancel gives back`
	work()
}
