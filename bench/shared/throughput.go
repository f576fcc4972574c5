package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// A rate that never refuses, so that every decision is a grant and a write.
const unreached = 10_000_000

var errRefused = errors.New("refused at a rate that can't be reached")

type contender struct {
	name   string
	decide func(ctx context.Context) error
}

// On one key. In debt means: callers queue for permits, so their order counts, and one call to Redis is in flight.
func onOneKey(c *redis.Client) ([]contender, error) {
	policy := reserve.Must(pace.Bursty(unreached))
	ours := reserve.Must(shared.New(goredis.Client(c), "bench", policy, shared.WithTimeout(time.Second)))
	queued := reserve.Must(shared.New(goredis.Client(c), "queued", policy, shared.WithTimeout(time.Second)))
	if _, err := queued.Reserve(context.Background(), 1000*unreached); err != nil {
		return nil, err
	}
	store, err := goredisstore.NewCtx(c, "throttled:")
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerSec(unreached), MaxBurst: unreached}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	peer := redis_rate.NewLimiter(c)
	return []contender{
		{"redis_rate v10", func(ctx context.Context) error {
			_, err := peer.Allow(ctx, "bench", redis_rate.PerSecond(unreached))
			return err
		}},
		{"throttled v2", func(ctx context.Context) error {
			_, _, err := gcra.RateLimitCtx(ctx, "bench", 1)
			return err
		}},
		{"pace", func(ctx context.Context) error { return granted(ours.TryAcquire(ctx, 1)) }},
		{"pace, in debt", func(ctx context.Context) error {
			_, err := queued.Reserve(ctx, 1)
			return err
		}},
	}, nil
}

func granted(ok bool, err error) error {
	if err == nil && !ok {
		return errRefused
	}
	return err
}

// On many keys: each call is for one of 10,000, at random.
func onManyKeys(c *redis.Client) ([]contender, error) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("user ", i)
	}
	policy := reserve.Must(pace.Bursty(unreached))
	ours := reserve.Must(shared.NewKeyed(goredis.Client(c), policy, shared.WithTimeout(time.Second)))
	peer := redis_rate.NewLimiter(c)
	return []contender{
		{"redis_rate v10", func(ctx context.Context) error {
			_, err := peer.Allow(ctx, keys[rand.IntN(len(keys))], redis_rate.PerSecond(unreached))
			return err
		}},
		{"pace", func(ctx context.Context) error { return granted(ours.TryAcquire(ctx, keys[rand.IntN(len(keys))], 1)) }},
	}, nil
}

type result struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // of the server, a decision
	failed    float64       // share
}

func throughput(addr string, length time.Duration, rounds int) error {
	if err := compare(addr, length, rounds, "goroutines on one key", onOneKey); err != nil {
		return err
	}
	fmt.Println()
	return compare(addr, length, rounds, "goroutines on 10,000 keys", onManyKeys)
}

// compare prints a table of the contenders, from 1, 16 and 64 goroutines.
func compare(addr string, length time.Duration, rounds int, title string,
	contenders func(*redis.Client) ([]contender, error)) error {
	var rows [][]string
	for _, goroutines := range []int{1, 16, 64} {
		c := connect(addr)
		all, err := contenders(c)
		if err != nil {
			return err
		}
		results := make([][]result, len(all))
		for range rounds { // in turn, so that a slow minute hurts all of them
			for i, x := range all {
				r, err := measure(c, x, goroutines, length)
				if err != nil {
					return err
				}
				results[i] = append(results[i], r)
			}
		}
		_ = c.Close()
		var peer result
		for i, x := range all {
			slices.SortFunc(results[i], func(a, b result) int { return int(a.perSecond - b.perSecond) })
			r := results[i][rounds/2]
			rows = append(rows, []string{fmt.Sprintf("%s, %d", x.name, goroutines), fmt.Sprintf("%.0f", r.perSecond),
				fmt.Sprint(r.p50.Round(time.Microsecond)), fmt.Sprint(r.p99.Round(time.Microsecond)),
				fmt.Sprintf("%.0f %%", 100*r.failed), fmt.Sprint(r.cpu.Round(10 * time.Nanosecond))})
			if i == 0 {
				peer = r
			}
			if strings.HasPrefix(x.name, "pace") {
				rows = append(rows, []string{"  of redis_rate's", fmt.Sprintf("%.2f x", r.perSecond/peer.perSecond),
					"", "", "", fmt.Sprintf("%.3f x", float64(r.cpu)/float64(peer.cpu))})
			}
		}
	}
	report.Table(os.Stdout, []string{title, ">1/s", ">p50", ">p99", ">failed", ">Redis CPU each"}, rows)
	return nil
}

// measure has goroutines decide in a loop.
func measure(c *redis.Client, x contender, goroutines int, length time.Duration) (result, error) {
	ctx := context.Background()
	took := make([][]time.Duration, goroutines)
	failed := make([]int, goroutines)
	var wg sync.WaitGroup
	_ = x.decide(ctx) // the script is loaded
	before, err := serverCPU(c)
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for at := time.Now(); at.Sub(begin) < length; {
				if x.decide(ctx) != nil {
					failed[g]++
				}
				now := time.Now()
				took[g] = append(took[g], now.Sub(at))
				at = now
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begin)
	cpu, err := serverCPU(c)
	all := slices.Concat(took...)
	slices.Sort(all)
	bad := 0
	for _, n := range failed {
		bad += n
	}
	return result{
		perSecond: float64(len(all)) / elapsed.Seconds(),
		p50:       all[len(all)/2], p99: all[len(all)*99/100],
		cpu:    (cpu - before) / time.Duration(len(all)),
		failed: float64(bad) / float64(len(all)),
	}, err
}

// localRefusals measures TryAcquire while the last answer proves that it must refuse.
func localRefusals(addr string) error {
	c := connect(addr)
	defer c.Close()
	ctx := context.Background()
	l := reserve.Must(shared.New(goredis.Client(c), "refuse", reserve.Must(pace.Bursty(0.001))))
	if _, err := l.Reserve(ctx, 10); err != nil {
		return err
	}
	const calls = 1_000_000
	begin := time.Now()
	for range calls {
		if ok, err := l.TryAcquire(ctx, 1); ok || err != nil {
			return fmt.Errorf("a request that must be refused: granted %v, error %w", ok, err)
		}
	}
	each := float64(time.Since(begin).Nanoseconds()) / calls
	fmt.Printf("\nlocal refusal: %.1f ns, the calls to Redis once a second included\n", each)
	return nil
}
