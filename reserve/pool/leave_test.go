package pool_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/pool"
)

// A caller that has returned has left nothing in any queue, whatever stands in front of what, and also if its limit was
// just being asked.
func TestLeavesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	class := []fair.Class{{Name: "c"}}
	for name, by := range map[string]func(l *reserve.Limiter) reserve.Reserver{
		"limiter": func(l *reserve.Limiter) reserve.Reserver { return l },
		"custom":  func(l *reserve.Limiter) reserve.Reserver { return newCustom(l, 20*time.Millisecond, nil) },
		"all":     func(l *reserve.Limiter) reserve.Reserver { return reserve.All(even(1000), l) },
	} {
		for front, in := range map[string]func(by reserve.Reserver) reserve.Reserver{
			"pool": func(by reserve.Reserver) reserve.Reserver {
				return reserve.Must(pool.New([]pool.Member[int]{{By: by}})).Reserver()
			},
			"pool of two": func(by reserve.Reserver) reserve.Reserver {
				far := even(1)
				far.PauseUntil(time.Now().Add(24 * time.Hour))
				return reserve.Must(pool.New([]pool.Member[int]{{By: by}, {By: far}})).Reserver()
			},
			"fair": func(by reserve.Reserver) reserve.Reserver {
				return reserve.Must(fair.New(by, class)).Class("c")
			},
			"fair of all": func(by reserve.Reserver) reserve.Reserver {
				return reserve.Must(fair.New(reserve.All(by, even(1000)), class)).Class("c")
			},
			"two": func(by reserve.Reserver) reserve.Reserver {
				return reserve.Must(fair.New(reserve.Must(pool.New([]pool.Member[int]{{By: by}})).Reserver(), class))
			},
		} {
			for _, after := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 500 * time.Millisecond} {
				for _, cause := range []string{"deadline", "cancel"} {
					t.Run(front+" of "+name+" after "+after.String()+" by "+cause, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							l := even(1)
							require.True(t, l.TryAcquire(1))
							inner := reserve.Must(fair.New(by(l), class))
							outer := in(inner.Class("c"))
							ctx, cancel := context.WithTimeout(background, time.Hour)
							if cause == "deadline" {
								ctx, cancel = context.WithTimeout(background, after)
							} else {
								time.AfterFunc(after, cancel)
							}
							defer cancel()
							_, err := reserve.Acquire(ctx, outer, 1)
							require.Error(t, err)
							require.Zero(t, inner.Snapshot().Classes[0].Waiting)
							time.Sleep(time.Hour)
						})
					})
				}
			}
		}
	}
}
