package matrix

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// besides makes a client of a transport that repeats refused calls.
func besides(name string, of func(base http.RoundTripper, s Setting, random *rand.Rand) http.RoundTripper) Client {
	return Client{Name: name, New: func(base http.RoundTripper, _ Kind, s Setting) *http.Client {
		who, _ := strconv.Atoi(base.(named).who)
		return &http.Client{Transport: of(base, s, rand.New(rand.NewPCG(s.Seed, uint64(who)+100)))}
	}}
}

// The clients that are not pace: each sends at a rate, and what was refused again after a backoff with full jitter.
var (
	backsOff = besides("backoff", func(base http.RoundTripper, _ Setting, random *rand.Rand) http.RoundTripper {
		return &persistent{base: base, random: random, most: time.Minute, obeys: true, pace: unpaced}
	})
	fixedRate = besides("fixed rate", func(base http.RoundTripper, s Setting, random *rand.Rand) http.RoundTripper {
		fixed := func(bool) float64 { return s.Rate }
		return &persistent{base: base, random: random, most: time.Minute, obeys: true, pace: fixed}
	})
	awsAdaptive = besides("aws adaptive", func(base http.RoundTripper, _ Setting, random *rand.Rand) http.RoundTripper {
		a := &cubic{rate: math.Inf(1), throttled: time.Now(), bucket: time.Now()}
		return &persistent{base: base, random: random, most: 20 * time.Second, pace: a.update, asks: true}
	})
	greed = besides("greed", func(base http.RoundTripper, _ Setting, random *rand.Rand) http.RoundTripper {
		return &persistent{base: base, random: random, most: time.Millisecond, pace: unpaced}
	})
)

func unpaced(bool) float64 { return math.Inf(1) }

// persistent repeats each call until it is accepted.
type persistent struct {
	base  http.RoundTripper
	most  time.Duration // backoff
	obeys bool          // Retry-After
	asks  bool          // for the rate after each answer
	pace  func(refused bool) float64

	mu      sync.Mutex
	random  *rand.Rand
	rate    float64 // 0: before the first call
	permits float64
	last    time.Time // when they were counted
}

// take takes a permit, or returns how long to wait before the next try. Those of a second are saved up, or one.
func (p *persistent) take() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.rate == 0 {
		p.rate, p.last, p.permits = math.Inf(1), now, 1
		if !p.asks {
			p.rate = p.pace(false)
		}
	}
	most := 1.
	if p.asks {
		most = max(1, p.rate)
	}
	p.permits = min(most, p.permits+min(p.rate, 1e9)*(now.Sub(p.last).Seconds()+1e-9))
	p.last = now
	if p.permits < 1 {
		return max(time.Millisecond, time.Duration((1-p.permits)/p.rate*float64(time.Second)))
	}
	p.permits--
	return 0
}

// answered returns how long to wait after a refusal.
func (p *persistent) answered(refused bool, try int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks {
		p.rate = p.pace(refused)
	}
	return time.Duration(p.random.Float64() * float64(min(p.most, time.Second<<min(try, 10))))
}

func (p *persistent) RoundTrip(r *http.Request) (*http.Response, error) {
	for try := 0; ; try++ {
		for wait := p.take(); wait > 0; wait = p.take() {
			if err := awaited(r.Context(), wait); err != nil {
				return nil, err
			}
		}
		response, err := p.base.RoundTrip(r)
		if err != nil {
			return response, err
		}
		wait := p.answered(response.StatusCode != http.StatusOK, try)
		if response.StatusCode == http.StatusOK {
			return response, nil
		}
		if s, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && p.obeys {
			wait = max(wait, time.Duration(s)*time.Second)
		}
		if err := awaited(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

func awaited(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cubic is the rate of aws-sdk-go-v2's adaptive mode (v1.48.0, adaptive_ratelimit.go): to .7 after a refusal, and back
// along a cubic curve.
type cubic struct {
	rate, sent, highest, window float64
	count                       int
	bucket, throttled           time.Time
}

func (a *cubic) update(refused bool) float64 {
	now := time.Now()
	a.count++
	if d := now.Sub(a.bucket).Truncate(500 * time.Millisecond); d > 0 {
		a.sent = float64(a.count)/d.Seconds()*.8 + a.sent*.2
		a.count, a.bucket = 0, a.bucket.Add(d)
	}
	if math.IsInf(a.rate, 1) && !refused {
		return a.rate
	}
	rate := 0.
	if refused {
		a.highest, a.throttled = min(a.sent, a.rate), now
		rate = .7 * a.highest
	}
	a.window = math.Cbrt(a.highest * .3 / .4)
	if !refused {
		rate = .4*math.Pow(now.Sub(a.throttled).Seconds()-a.window, 3) + a.highest
	}
	a.rate = max(min(rate, 2*a.sent), .5)
	return a.rate
}
