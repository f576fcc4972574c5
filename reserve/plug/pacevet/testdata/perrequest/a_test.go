package a

import (
	"net/http"
	"testing"

	"golang.org/x/time/rate"
)

func TestA(t *testing.T) {
	for range 3 { // each round has a fresh limiter on purpose
		lim := rate.NewLimiter(1, 1)
		lim.Allow()
	}
	_ = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lim := rate.NewLimiter(1, 1) // want `a limiter that is made for each request`
		if !lim.Allow() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
}
