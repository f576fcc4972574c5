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

type config struct {
	Seconds int64
	WaitNs  int64
}

func converted(c *config, seconds int, per *int) {
	window.New(100, time.Duration(seconds))              // want `is nanoseconds: multiply it by time.Second`
	window.New(100, time.Duration(c.Seconds))            // want `a converted number is nanoseconds`
	window.New(100, time.Duration(*per))                 // want `a converted number is nanoseconds`
	window.New(100, (time.Duration(seconds)))            // want `a converted number is nanoseconds`
	_ = fair.Class{MaxAge: time.Duration(c.Seconds)}     // want `a converted number is nanoseconds`
	shared.WithTimeout(time.Duration(time.Now().Unix())) // want `a converted number is nanoseconds`
}

func right(l *pace.Limiter, d time.Duration, seconds int, c *config, timeoutNs int64) {
	window.New(100, time.Duration(c.WaitNs))
	window.New(100, time.Duration(timeoutNs))
	window.New(100, time.Duration(d.Nanoseconds()))
	window.New(100, time.Duration(time.Now().UnixNano()))
	window.New(100, 60*time.Second)
	window.New(100, short)
	window.New(100, d)
	window.New(100, time.Duration(seconds)*time.Second)
	window.New(100, time.Duration(float64(seconds)*1e9))
	window.New(100, time.Duration(seconds*1e9))
	pace.Per(100, 1e9)
	pace.NewBursty(5, pace.WithBurst(0))
	l.ReserveWithin(context.Background(), 30, 0)
	_ = fair.Class{Name: "batch", Weight: 2, Priority: 1, MaxAge: time.Minute}
	_ = []int{30}
	time.Sleep(30)
}
