package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// A rate that never refuses, so that every decision is a grant and a write.
const unreached = 10_000_000

type contender struct {
	name   string
	decide func(ctx context.Context) error
}

func contenders(c *redis.Client) []contender {
	ours := reserve.Must(shared.New(goredis.Client(c), "bench", reserve.Must(pace.Bursty(unreached)), shared.WithTimeout(time.Second)))
	queued := reserve.Must(shared.New(goredis.Client(c), "queued", reserve.Must(pace.Bursty(unreached)), shared.WithTimeout(time.Second)))
	if _, err := queued.Reserve(context.Background(), 1000*unreached); err != nil {
		fatal(err)
	}
	rate := redis_rate.NewLimiter(c)
	store, err := goredisstore.NewCtx(c, "throttled:")
	if err != nil {
		fatal(err)
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerSec(unreached), MaxBurst: unreached}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		fatal(err)
	}
	return []contender{
		{"redis_rate v10", func(ctx context.Context) error {
			_, err := rate.Allow(ctx, "bench", redis_rate.PerSecond(unreached))
			return err
		}},
		{"throttled v2", func(ctx context.Context) error {
			_, _, err := gcra.RateLimitCtx(ctx, "bench", 1)
			return err
		}},
		goZero(c),
		{"pace", func(ctx context.Context) error {
			ok, err := ours.TryAcquire(ctx, 1)
			if err == nil && !ok {
				return errRefused
			}
			return err
		}},
		// The same, while callers queue for permits: then their order counts, and one call is in flight.
		{"pace, in debt", func(ctx context.Context) error {
			_, err := queued.Reserve(ctx, 1)
			return err
		}},
	}
}

var errRefused = fmt.Errorf("refused at a rate that can't be reached")

// On many keys: each call is for one of 10,000, at random.
func keyedContenders(c *redis.Client) []contender {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("user ", i)
	}
	policy := reserve.Must(pace.Bursty(unreached))
	ours := reserve.Must(shared.NewKeyed(goredis.Client(c), policy, shared.WithTimeout(time.Second)))
	rate := redis_rate.NewLimiter(c)
	return []contender{
		{"redis_rate v10", func(ctx context.Context) error {
			_, err := rate.Allow(ctx, keys[rand.IntN(len(keys))], redis_rate.PerSecond(unreached))
			return err
		}},
		{"pace", func(ctx context.Context) error {
			ok, err := ours.TryAcquire(ctx, keys[rand.IntN(len(keys))], 1)
			if err == nil && !ok {
				return errRefused
			}
			return err
		}},
	}
}

type result struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // of the server, a decision
	failed    float64       // share
}

func throughput(addr string, length time.Duration, rounds int) {
	compare(addr, length, rounds, "goroutines on one key", []int{1, 16, 64}, contenders)
	fmt.Println()
	compare(addr, length, rounds, "goroutines on 10,000 keys", []int{1, 16, 64}, keyedContenders)
}

func compare(
	addr string, length time.Duration, rounds int, title string, crowds []int,
	contenders func(*redis.Client) []contender,
) {
	row(title, "1/s", "p50", "p99", "failed", "Redis CPU each")
	row("---", "---", "---", "---", "---", "---")
	for _, goroutines := range crowds {
		c := connect(addr)
		all := contenders(c)
		results := make([][]result, len(all))
		for range rounds { // interleaved, so that a slow minute hurts all of them
			for i, x := range all {
				results[i] = append(results[i], measure(c, x, goroutines, length))
			}
		}
		var peer result
		for i, x := range all {
			slices.SortFunc(results[i], func(a, b result) int { return int(a.perSecond - b.perSecond) })
			r := results[i][rounds/2]
			row(fmt.Sprintf("%s, %d", x.name, goroutines), fmt.Sprintf("%.0f", r.perSecond), r.p50.Round(time.Microsecond), r.p99.Round(time.Microsecond),
				fmt.Sprintf("%.0f %%", 100*r.failed), r.cpu.Round(10*time.Nanosecond))
			if i == 0 {
				peer = r
			}
			if strings.HasPrefix(x.name, "pace") {
				row("  of redis_rate's", fmt.Sprintf("%.2f x", r.perSecond/peer.perSecond), "", "", "", fmt.Sprintf("%.3f x", float64(r.cpu)/float64(peer.cpu)))
			}
		}
		_ = c.Close()
	}
}

// measure lets goroutines decide in a loop.
func measure(c *redis.Client, x contender, goroutines int, length time.Duration) result {
	ctx := context.Background()
	took := make([][]time.Duration, goroutines)
	failed := make([]int, goroutines)
	var wg sync.WaitGroup
	_ = x.decide(ctx) // the script is loaded
	cpu, begin := serverCPU(c), time.Now()
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
	cpu = serverCPU(c) - cpu
	all := slices.Concat(took...)
	slices.Sort(all)
	bad := 0
	for _, n := range failed {
		bad += n
	}
	return result{
		perSecond: float64(len(all)) / elapsed.Seconds(),
		p50:       all[len(all)/2], p99: all[len(all)*99/100],
		cpu:    cpu / time.Duration(len(all)),
		failed: float64(bad) / float64(len(all)),
	}
}

// localRefusals measures TryAcquire while the last answer proves that it must refuse.
func localRefusals(addr string) {
	c := connect(addr)
	defer c.Close()
	ctx := context.Background()
	l := reserve.Must(shared.New(goredis.Client(c), "refuse", reserve.Must(pace.Bursty(0.001))))
	if _, err := l.Reserve(ctx, 10); err != nil {
		fatal(err)
	}
	const calls = 1_000_000
	begin := time.Now()
	for range calls {
		if ok, err := l.TryAcquire(ctx, 1); ok || err != nil {
			fatal("not refused: ", err)
		}
	}
	fmt.Printf("\nlocal refusal: %.1f ns, the calls to Redis once a second included\n", float64(time.Since(begin).Nanoseconds())/calls)
}
