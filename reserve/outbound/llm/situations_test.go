package llm

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
)

// A backend is a provider, or a server of one's own, as a situation has it. It counts requests and tokens in rolling
// minutes, or in token buckets that hold a minute's worth.
type backend struct {
	rpm, tpm int // 0: no limit
	bucket   bool
	inFlight int // at a time; more are answered with 503
	takes    time.Duration
	flight   time.Duration // of a request, and of a response
	says     func(b *backend, h http.Header, now time.Time, refused bool)

	mu                    sync.Mutex
	log                   []use
	requests, tokens      float64 // in the buckets
	filled                time.Time
	out                   int
	accepted, refused     int
	acceptedBy, refusedBy map[string]int
	last                  time.Time
}

type use struct {
	at     time.Time
	tokens int
}

// left returns what remains, as a server has it. The backend must be locked.
func (b *backend) left(now time.Time) (requests, tokens int) {
	if b.bucket {
		if b.filled.IsZero() {
			b.requests, b.tokens, b.filled = float64(b.rpm), float64(b.tpm), now
		}
		part := now.Sub(b.filled).Minutes()
		b.filled = now
		b.requests = min(float64(b.rpm), b.requests+part*float64(b.rpm))
		b.tokens = min(float64(b.tpm), b.tokens+part*float64(b.tpm))
		return int(b.requests), int(b.tokens)
	}
	for len(b.log) > 0 && now.Sub(b.log[0].at) >= time.Minute {
		b.log = b.log[1:]
	}
	tokens = b.tpm
	for _, u := range b.log {
		tokens -= u.tokens
	}
	return b.rpm - len(b.log), tokens
}

// take takes a call of so many tokens, if there is room.
func (b *backend) take(now time.Time, tokens int) bool {
	requests, left := b.left(now)
	if b.rpm > 0 && requests < 1 || b.tpm > 0 && left < tokens {
		return false
	}
	if b.bucket {
		b.requests--
		b.tokens -= float64(tokens)
	} else {
		b.log = append(b.log, use{now, tokens})
	}
	return true
}

func (b *backend) RoundTrip(r *http.Request) (*http.Response, error) {
	text := ""
	if r.Body != nil {
		all, _ := io.ReadAll(r.Body)
		r.Body.Close()
		text = string(all)
	}
	_ = text
	who := r.Header.Get("X-Who")
	used, _ := strconv.Atoi(r.Header.Get("X-Tokens"))
	time.Sleep(b.flight)
	b.mu.Lock()
	now := time.Now()
	h := http.Header{"Content-Type": {"application/json"}}
	if b.acceptedBy == nil {
		b.acceptedBy, b.refusedBy = map[string]int{}, map[string]int{}
	}
	status := 200
	switch {
	case b.inFlight > 0 && b.out >= b.inFlight:
		status = 503
	case !b.take(now, used):
		status = 429
	}
	if status == 200 {
		b.accepted++
		b.acceptedBy[who] += used
		b.out++
		b.last = now
	} else {
		b.refused++
		b.refusedBy[who]++
	}
	if b.says != nil {
		b.says(b, h, now, status != 200)
	}
	b.mu.Unlock()
	if status != 200 {
		time.Sleep(b.flight)
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"slow down"}}`)), Request: r}, nil
	}
	time.Sleep(b.takes + b.flight)
	b.mu.Lock()
	b.out--
	b.mu.Unlock()
	usage := fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":0,"total_tokens":%d}}`, used, used)
	return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(usage)), Request: r}, nil
}

// openAIs are OpenAI's headers.
func openAIs(b *backend, h http.Header, now time.Time, refused bool) {
	requests, tokens := b.left(now)
	set := func(name string, limit, left int) {
		if limit > 0 {
			h.Set("x-ratelimit-limit-"+name, strconv.Itoa(limit))
			h.Set("x-ratelimit-remaining-"+name, strconv.Itoa(max(0, left)))
			h.Set("x-ratelimit-reset-"+name, (time.Duration(limit-left) * time.Minute / time.Duration(limit)).String())
		}
	}
	set("requests", b.rpm, requests)
	set("tokens", b.tpm, tokens)
	if refused {
		h.Set("Retry-After", "1")
	}
}

// An sdk makes a call as OpenAI's and Anthropic's clients do: with two retries.
func sdk(ctx context.Context, rt http.RoundTripper, random *rand.Rand, address, body string, header http.Header) (ok bool) {
	const retries = 2
	for attempt := range retries + 1 {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		for name, values := range header {
			r.Header[name] = values
		}
		response, err := rt.RoundTrip(r)
		wait := min(500*time.Millisecond<<attempt, 8*time.Second)
		wait -= time.Duration(random.Float64() * float64(wait) / 4)
		if err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
			switch s := response.StatusCode; {
			case s < 400:
				return true
			case s != 408 && s != 409 && s != 429 && s < 500 || response.Header.Get("X-Should-Retry") == "false":
				return false
			}
			if s, err := strconv.ParseFloat(response.Header.Get("Retry-After"), 64); err == nil && s > 0 && s <= 60 {
				wait = time.Duration(s * float64(time.Second))
			}
		}
		if attempt < retries {
			time.Sleep(wait)
		}
	}
	return false
}

// A crowd is calls of one program: n of them, so far apart.
type crowd struct {
	name    string
	n       int
	every   time.Duration
	starts  time.Duration
	tokens  int
	body    string
	address string
	through http.RoundTripper
}

// A result says how the calls of a program went.
type result struct {
	failed, calls int
	took          time.Duration
	sent, refused int // attempts, of all programs
}

func (r result) String() string {
	return fmt.Sprintf("%d of %d failed, %d of %d sent were refused (%.0f %%), %v", r.failed, r.calls, r.refused, r.sent,
		100*float64(r.refused)/float64(max(1, r.sent)), r.took.Round(time.Second))
}

// run makes the calls of programs at one backend, in a bubble.
func (b *backend) run(t *testing.T, crowds ...crowd) (results []result) {
	results = make([]result, len(crowds))
	begin := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, c := range crowds {
		if c.address == "" {
			c.address = api
		}
		for n := range c.n {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(n)))
				time.Sleep(c.starts + time.Duration(n)*c.every + time.Duration(n)*time.Microsecond)
				body := c.body
				if body == "" {
					body = fmt.Sprintf(`{"model":"m","max_tokens":1,"messages":[{"content":"%s"}]}`, strings.Repeat("abcd ", c.tokens*4/5))
				}
				ok := sdk(t.Context(), c.through, random, c.address, body, http.Header{"X-Who": {c.name}, "X-Tokens": {strconv.Itoa(c.tokens)}})
				mu.Lock()
				defer mu.Unlock()
				results[i].calls++
				results[i].took = max(results[i].took, time.Since(begin))
				if !ok {
					results[i].failed++
				}
			})
		}
	}
	all.Wait()
	for i, c := range crowds {
		results[i].refused = b.refusedBy[c.name]
		results[i].sent = b.refusedBy[c.name] + b.acceptedBy[c.name]/max(1, c.tokens)
		t.Log(c.name, results[i])
	}
	return results
}

// transportTo returns the transport to a backend.
func transportTo(t *testing.T, b *backend, p Provider, l Limits, opts ...Option) *Transport {
	transport, err := New(b, p, l, opts...)
	require.NoError(t, err)
	return transport
}

// Another program uses 48,000 of 60,000 tokens a minute, evenly, and each response tells what remains. Without this the
// transport had 96 of 120 calls fail, and 98 % of what it sent refused. The first 48 are refused before it can know.
func TestNeighbour(t *testing.T) {
	for _, c := range []struct {
		name   string
		bucket bool
		opts   []Option
		failed int
		most   float64 // refused
	}{
		{"as it comes", false, nil, 12, 0.34},
		{"with retries", false, []Option{WithOutbound(outbound.WithRetries(3))}, 12, 0.34},
		{"as it comes, a bucket", true, nil, 12, 0.36},
		{"WithBucket, a bucket", true, []Option{WithBucket(time.Minute)}, 18, 0.45},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{tpm: 60_000, rpm: 1e6, bucket: c.bucket, says: openAIs, flight: 20 * time.Millisecond}
			for i := range 60 { // it has been there for a minute
				b.take(time.Now().Add(time.Duration(i-60)*time.Second), 800)
			}
			them := crowd{name: "neighbour", n: 700, every: time.Second, tokens: 800, through: b}
			us := crowd{name: c.name, n: 120, tokens: 1000,
				through: transportTo(t, b, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: 60_000}, c.opts...)}
			r := b.run(t, us, them)[0]
			require.LessOrEqual(t, r.failed, c.failed)
			require.LessOrEqual(t, float64(r.refused), c.most*float64(r.sent))
			require.Less(t, r.took, 12*time.Minute)
		})
	}
}

// Two programs of ours begin together at one quota, and want more than there is.
func TestTwoPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tpm: 60_000, rpm: 1e6, says: openAIs, flight: 20 * time.Millisecond}
		l := Limits{RequestsPerMinute: 1e6, TokensPerMinute: 60_000}
		one := crowd{name: "one", n: 400, tokens: 1000, through: transportTo(t, b, OpenAI(), l)}
		two := crowd{name: "two", n: 400, tokens: 1000, through: transportTo(t, b, OpenAI(), l)}
		go func() {
			time.Sleep(10 * time.Minute)
			b.mu.Lock()
			defer b.mu.Unlock()
			both := float64(b.acceptedBy["one"] + b.acceptedBy["two"])
			t.Logf("of %d%% that were used, %v", int(both/6000), b.acceptedBy)
			require.GreaterOrEqual(t, both, 0.84*600_000)
			require.InDelta(t, 0.5, float64(b.acceptedBy["one"])/both, 0.13)
		}()
		for _, r := range b.run(t, one, two) {
			require.Zero(t, r.failed)
			require.LessOrEqual(t, float64(r.refused), 0.16*float64(r.sent))
		}
		time.Sleep(time.Hour)
	})
}

// soon tells when there is room again, as Google's RetryInfo and most Retry-After do.
func soon(b *backend, h http.Header, now time.Time, refused bool) {
	if refused && len(b.log) > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(time.Minute.Seconds()-now.Sub(b.log[0].at).Seconds()))))
	}
}

// Where no limit is known, the server's word is obeyed, a call may be sent again, and hooks are told.
func TestNoLimitKnown(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithOutbound(outbound.WithRetries(3))}, {WithOutbound(outbound.WithRetries(3), outbound.Adaptive())}} {
		for _, p := range []Provider{Gemini(), OpenAI()} {
			synctest.Test(t, func(t *testing.T) {
				b := &backend{rpm: 15, says: soon, flight: 20 * time.Millisecond, takes: time.Second}
				var stopped atomic.Int64
				c := crowd{name: p.name + fmt.Sprint(len(opts)), n: 60, tokens: 1, body: `{"model":"m"}`, through: transportTo(t, b, p, Limits{},
					append(opts, WithOutbound(outbound.WithHooks(outbound.Hooks{Throttled: func(*http.Response, string, time.Duration) { stopped.Add(1) }})))...)}
				r := b.run(t, c)[0]
				if opts != nil {
					require.LessOrEqual(t, r.failed, 3)
				}
				require.Equal(t, int64(r.refused), stopped.Load())
			})
		}
	}
	for _, opts := range [][]Option{nil, {WithOutbound(outbound.WithRetries(3), outbound.RetryNonIdempotent(), outbound.Adaptive())}, {WithOutbound(outbound.WithRetries(6), outbound.RetryNonIdempotent())}} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{inFlight: 8, flight: 5 * time.Millisecond, takes: 2 * time.Second}
			b.run(t, crowd{name: "vLLM" + fmt.Sprint(len(opts)), n: 200, tokens: 1, body: `{"model":"m"}`, through: transportTo(t, b, OpenAI(), Limits{}, opts...)})
		})
	}
}
