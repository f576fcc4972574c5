package a

import (
	"context"
	"time"

	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
)

const back = -3

func negative(ctx context.Context, lim *rate.Limiter, other *body.Limiter, n int, now time.Time) {
	lim.ReserveN(now, -n)       // want `ReserveN of a negative number of tokens`
	lim.ReserveN(now, -(n - 1)) // want `ReserveN of a negative`
	lim.AllowN(now, back)       // want `AllowN of a negative`
	_ = other.WaitN(ctx, -1)    // want `WaitN of a negative`
	other.ReserveN(now, -n)     // want `ReserveN of a negative`
}

func right(lim *rate.Limiter, other *body.Limiter, n, m int, now time.Time) {
	lim.ReserveN(now, n)
	lim.ReserveN(now, n-m)
	lim.AllowN(now, 0)
	lim.AllowN(now, - -3)
	other.AllowN(now.Add(-time.Second), 1)
	other.SetBurst(-1)
}
