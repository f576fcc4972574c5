//go:build !withoutslack

package main

import (
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A commit that is measured beside this one may have no WithSlack.
func init() {
	limiters["slack"] = func(perSecond int) limiter {
		return reserve.Must(pace.NewBursty(float64(perSecond), pace.WithBurst(0), reserve.WithSlack(time.Millisecond)))
	}
}
