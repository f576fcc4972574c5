package a

import (
	"context"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

const (
	minute = 60 // of what?
	short  = 50 * time.Microsecond
)

func numbers(l *pace.Limiter) {
	window.New(100, 60)                          // want `60 without a unit is 60 ns: multiply it by time.Second`
	window.New(100, minute)                      // want `60 without a unit`
	window.New(100, time.Duration(5*60))         // want `300 without a unit`
	warmup.New(10, 10)                           // want `10 without a unit`
	pace.NewBursty(5, pace.WithBurst(+5))        // want `5 without a unit`
	pace.Per(100, 60)                            // want `60 without a unit`
	shared.WithTimeout(5)                        // want `5 without a unit`
	l.ReserveWithin(context.Background(), 1, 30) // want `30 without a unit`
	_ = fair.Class{Name: "batch", MaxAge: 30}    // want `30 without a unit`
	_ = []fair.Class{{MaxAge: 30}}               // want `30 without a unit`
}

func right(l *pace.Limiter, d time.Duration, seconds int) {
	window.New(100, 60*time.Second)
	window.New(100, short)
	window.New(100, d)
	window.New(100, time.Duration(seconds)*time.Second)
	window.New(100, time.Duration(seconds))
	pace.Per(100, 1e9)
	pace.NewBursty(5, pace.WithBurst(0))
	l.ReserveWithin(context.Background(), 30, 0)
	_ = fair.Class{Name: "batch", Weight: 2, Priority: 1, MaxAge: time.Minute}
	_ = []int{30}
	time.Sleep(30)
}
