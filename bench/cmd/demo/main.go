// Command demo shows what pace is for. It starts an HTTP API on this machine that
// allows 50 calls a second, with a burst of 10, and answers 429 to those beyond; then
// 64 goroutines make 300 calls to it, first unpaced and then paced by pace. It ends
// by itself in under 30 seconds with a table and a picture.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nextfree/pace/bench/internal/demo"
)

const (
	callsPerSecond = 50 // that the API allows
	burst          = 10 // at one moment
	calls          = 300
	goroutines     = 64
	// A half is stopped after this, so that the demo ends in any case. Unpaced calls
	// that meet each other again and again take 29 s, at worst.
	limit = 20 * time.Second
)

func main() { theDemo().Main() }

func theDemo() demo.Demo[half] {
	api := &api{}
	return demo.Demo[half]{
		Handler: api,
		Intro: func(url string) string {
			return fmt.Sprintf(`%s is an API that allows %d calls/s with a burst of %d, and answers any other
with 429 and Retry-After: 1. A call takes it %d to %d ms. %d goroutines make %d calls; one
that is refused waits as long as Retry-After says, and tries again.
`, url, callsPerSecond, burst, fastest.Milliseconds(), slowest.Milliseconds(), goroutines, calls)
		},
		Half: func(ctx context.Context, name, url string) (half, error) {
			api.reset()
			h, err := makeCalls(ctx, name, url)
			h.seen = api.seen()
			return h, err
		},
		Header: []string{"", ">time", ">calls answered", ">calls sent", ">refused", ">wasted", ">longest wait"},
		Outro: fmt.Sprintf("At best it takes %.1f s: %d calls at once, and the other %d at %d/s. The picture shows the calls in every %v.",
			(time.Duration(calls-burst) * time.Second / callsPerSecond).Seconds(), burst, calls-burst, callsPerSecond, step),
		Draw: draw,
	}
}
