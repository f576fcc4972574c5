package main

import (
	"context"
	"sync"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

var ctx = context.Background()

// A peer makes limiters by key. They let burst through at once, then as many each
// second as perSecond says. Where there is a limit to the number of keys, it is maxKeys.
type peer struct {
	name    string
	bounded bool // there is such a limit
	new     func(perSecond float64, burst, maxKeys int) (take func(key string) bool, stop func())
}

func peers() []peer {
	nothing := func() {}
	return []peer{
		{"pace/keyed", true, func(perSecond float64, burst, maxKeys int) (func(string) bool, func()) {
			policy := reserve.Must(pace.Bursty(perSecond, pace.WithCapacity(float64(burst)), reserve.WithStored(float64(burst))))
			keys := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }, keyed.WithMaxKeys(maxKeys))
			return func(key string) bool { return keys.TryAcquire(key, 1) }, nothing
		}},
		{"x/time/rate, sync.Map", false, func(perSecond float64, burst, _ int) (func(string) bool, func()) {
			var keys sync.Map
			return func(key string) bool {
				l, ok := keys.Load(key)
				if !ok {
					l, _ = keys.LoadOrStore(key, rate.NewLimiter(rate.Limit(perSecond), burst))
				}
				return l.(*rate.Limiter).Allow()
			}, nothing
		}},
		{"x/time/rate, mutex map", false, func(perSecond float64, burst, _ int) (func(string) bool, func()) {
			var mu sync.Mutex
			keys := map[string]*rate.Limiter{}
			return func(key string) bool {
				mu.Lock()
				l, ok := keys[key]
				if !ok {
					l = rate.NewLimiter(rate.Limit(perSecond), burst)
					keys[key] = l
				}
				mu.Unlock()
				return l.Allow()
			}, nothing
		}},
		{"go-limiter memorystore", false, func(perSecond float64, burst, _ int) (func(string) bool, func()) {
			store := reserve.Must(memorystore.New(&memorystore.Config{
				Tokens:        uint64(burst),
				Interval:      time.Duration(float64(burst) / perSecond * 1e9),
				SweepInterval: time.Second, // default: 6 hours
				SweepMinTTL:   max(time.Second, time.Duration(float64(burst)/perSecond*1e9)),
			}))
			return func(key string) bool {
				_, _, _, ok, _ := store.Take(ctx, key)
				return ok
			}, func() { _ = store.Close(ctx) }
		}},
		throttledPeer("throttled memstore", false),
		throttledPeer("throttled memstore, LRU", true),
	}
}

func throttledPeer(name string, bounded bool) peer {
	return peer{name, bounded, func(perSecond float64, burst, maxKeys int) (func(string) bool, func()) {
		if !bounded {
			maxKeys = 0
		}
		rate := throttled.PerDuration(burst, time.Duration(float64(burst)/perSecond*1e9))
		quota := throttled.RateQuota{MaxRate: rate, MaxBurst: burst - 1}
		limiter := reserve.Must(throttled.NewGCRARateLimiterCtx(reserve.Must(memstore.NewCtx(maxKeys)), quota))
		return func(key string) bool {
			limited, _, err := limiter.RateLimitCtx(ctx, key, 1)
			return !limited && err == nil
		}, func() {}
	}}
}
