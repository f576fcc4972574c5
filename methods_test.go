//go:build queue

package pace_test

import "github.com/nextfree/pace/reserve"

// movable says whether there are Resume and Retime.
const movable = true

func resume(l *reserve.Limiter) { l.Resume() }

func retime(l *reserve.Limiter, rate float64) {
	if err := l.Retime(rate); err != nil {
		panic(err)
	}
}
