package matrix

import (
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// The numbers of outbound's documentation that no other test measures.

func limited(by func() *reserve.Limiter, opts ...outbound.Option) Client {
	return Client{New: func(base http.RoundTripper, _ Kind, _ Setting) *http.Client {
		return &http.Client{Transport: reserve.Must(outbound.New(base, by(), append(opts, outbound.WithRetries(100))...))}
	}}
}

func bursty(rate float64) func() *reserve.Limiter {
	return func() *reserve.Limiter { return reserve.Must(pace.NewBursty(rate)) }
}

// The worked example of the package comment, and what its windows cost.
func TestWorkedExample(t *testing.T) {
	s := Setting{Rate: 50, Burst: 10, Goroutines: 64, Calls: 500, Seed: 1, Latency: [2]time.Duration{5 * ms, 20 * ms}}
	retryAfter, policy := Kind{New: newBucket("1"), Ideal: bucketIdeal}, Kind{New: newDraft, Ideal: bucketIdeal}
	for _, c := range []struct {
		of      Kind
		client  Client
		seconds float64
		refused int
	}{
		{retryAfter, limited(bursty(50)), 10, 0},
		{retryAfter, limited(bursty(80), outbound.Adaptive()), 11.1, 1},
		{policy, limited(bursty(math.Inf(1)), outbound.Adaptive()), 10.2, 0},
	} {
		o := Median(t, c.of, c.client, s, 3)
		require.InDelta(t, c.seconds, o.Seconds, .05)
		require.Equal(t, c.refused, o.Refused)
	}

	s = Setting{Rate: 25, Window: time.Second, Goroutines: 64, Calls: 1000, Seed: 1, Latency: [2]time.Duration{140 * ms, 140 * ms}}
	log := Kind{New: newLog, Ideal: func(s Setting) time.Duration { return evenIdeal(s) - s.Window }}
	o := Median(t, log, limited(func() *reserve.Limiter { return reserve.Must(window.New(25, time.Second)) }), s, 1)
	require.InDelta(t, 1.14, o.Took, .005)
	require.Zero(t, o.Refused)
}

// How often a rate that was found is refused, how long it stands still, and what remains of it where the server refuses
// some requests at any rate.
func TestSteadyState(t *testing.T) {
	for rate, most := range map[float64]float64{1: .03, 3: .015, 50: .002} {
		if raced && rate < 50 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			length := time.Duration(min(3600, 60000/rate)) * time.Second
			seen := steadily(newBucket("1")(time.Now(), Setting{Rate: rate, Burst: max(2, rate/5)}), length)
			require.Less(t, float64(seen.refused)/float64(seen.calls), most, rate)
			require.Less(t, seen.stopped.Seconds(), .045*length.Seconds(), rate)
			require.Greater(t, float64(seen.calls-seen.refused), .93*rate*length.Seconds(), rate)
			t.Logf("%v/s: %+v in %v", rate, seen, length)
		})
	}
	for share, remains := range map[float64]float64{.01: 5.6, .03: 1.7} {
		if raced {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			chance := judge(func(_ time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
				if random.Float64() >= share {
					return 0, 200, ""
				}
				h.Set("Retry-After", "1")
				return 0, 429, ""
			})
			length := 4 * time.Hour
			seen := steadily(chance, length)
			require.InEpsilon(t, remains, float64(seen.calls)/length.Seconds(), .15, share)
			t.Logf("%v: %+v in %v", share, seen, length)
		})
	}
}

type seen struct {
	calls, refused int
	stopped        time.Duration // by stops of a second
}

// steadily calls for so long after the first ten minutes, and returns what the server saw in this time.
func steadily(server Judge, length time.Duration) (of seen) {
	const before = 10 * time.Minute
	begin, until := time.Now(), time.Time{}
	counted := judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
		takes, status, body := server.Answer(now, r, h)
		if now.Sub(begin) < before {
			return takes, status, body
		}
		of.calls++
		if status != 200 {
			of.refused++
			of.stopped += min(time.Second, now.Add(time.Second).Sub(until))
			until = now.Add(time.Second)
		}
		return takes, status, body
	})
	k := Kind{
		New:   func(time.Time, Setting) Judge { return counted },
		Ideal: func(Setting) time.Duration { return (before + length) / limit },
	}
	client := limited(bursty(math.Inf(1)), outbound.Adaptive())
	Run(k, client, Setting{Goroutines: 8, Calls: 1 << 20, Seed: 1, Latency: [2]time.Duration{5 * ms, 20 * ms}})
	return of
}
