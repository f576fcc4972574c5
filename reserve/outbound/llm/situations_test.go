package llm

import (
	"context"
	"fmt"
	"io"
	"maps"
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

	"github.com/nextfree/pace/internal/judge/limitertest"
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
	holds    bool                                 // a call's max_tokens, until it ends
	counts   func(s sizes) int                    // of a call; nil: input and output
	replies  func(s sizes) string                 // nil: OpenAI's usage
	refuses  func(now time.Duration) (status int) // whatever the limits say; 0: nothing
	throttle func(h http.Header) (int, string)    // how it refuses; nil: 429
	changes  func(b *backend, now time.Duration)  // at each call
	begun    time.Time                            // the first call
	streams  bool                                 // it answers at once, and takes its time for the body

	mu                              sync.Mutex
	log                             []*use
	requests, tokens                float64 // in the buckets
	filled                          time.Time
	out                             int
	accepted, refused               int
	acceptedBy, refusedBy, tokensBy map[string]int
	last                            time.Time
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

// take takes a call of so many tokens, if there is room. It returns how to settle it.
func (b *backend) take(now time.Time, tokens int) (settle func(tokens int), ok bool) {
	requests, left := b.left(now)
	if b.rpm > 0 && requests < 1 || b.tpm > 0 && left < tokens {
		return nil, false
	}
	if b.bucket {
		b.requests--
		b.tokens -= float64(tokens)
		return func(actual int) { b.tokens += float64(tokens - actual) }, true
	}
	u := &use{now, tokens}
	b.log = append(b.log, u)
	return func(actual int) { u.tokens = actual }, true
}

// sizes are what a call says of itself in headers. A part of its input is cached.
type sizes struct{ in, cached, out, most int }

func (s sizes) header(who string) http.Header {
	n := strconv.Itoa
	return http.Header{"X-Who": {who}, "X-In": {n(s.in)}, "X-Cached": {n(s.cached)}, "X-Out": {n(s.out)}, "X-Most": {n(s.most)}}
}

func sizesOf(r *http.Request) sizes {
	n := func(name string) int { i, _ := strconv.Atoi(r.Header.Get(name)); return i }
	return sizes{n("X-In"), n("X-Cached"), n("X-Out"), n("X-Most")}
}

func (b *backend) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	who, size := r.Header.Get("X-Who"), sizesOf(r)
	used := size.in + size.out
	if b.counts != nil {
		used = b.counts(size)
	}
	held := used
	if b.holds {
		held = size.in + max(size.out, size.most)
	}
	time.Sleep(b.flight)
	b.mu.Lock()
	now := time.Now()
	if b.begun.IsZero() {
		b.begun, b.acceptedBy, b.refusedBy = now, map[string]int{}, map[string]int{}
	}
	if b.changes != nil {
		b.changes(b, now.Sub(b.begun))
	}
	h := http.Header{"Content-Type": {"application/json"}}
	status, text := 200, `{"error":{"message":"slow down"}}`
	if b.refuses != nil {
		if s := b.refuses(now.Sub(b.begun)); s != 0 {
			status = s
		}
	}
	settle, ok := func(int) {}, true
	switch {
	case status != 200:
	case b.inFlight > 0 && b.out >= b.inFlight:
		status = 503
	default:
		if settle, ok = b.take(now, held); !ok {
			status = 429
			if b.throttle != nil {
				status, text = b.throttle(h)
			}
		}
	}
	if status == 200 {
		b.accepted++
		b.acceptedBy[who]++
		b.usedBy(who, used)
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
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	usage := fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, size.in, size.out, size.in+size.out)
	if b.replies != nil {
		usage = b.replies(size)
	}
	body := &answering{until: now.Add(b.takes), text: strings.NewReader(usage), settle: func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.out--
		if part := time.Since(now).Seconds() / b.takes.Seconds(); part < 1 { // the caller has left
			settle(size.in + int(part*float64(size.out)))
			return
		}
		settle(used)
	}}
	if b.streams {
		h.Set("Content-Type", sse)
		body.text = strings.NewReader("data: " + usage + "\n\n")
		return &http.Response{StatusCode: 200, Header: h, Body: body, Request: r}, nil
	}
	time.Sleep(b.takes + b.flight)
	body.settle()
	body.settle = nil
	return &http.Response{StatusCode: 200, Header: h, Body: body, Request: r}, nil
}

func (b *backend) usedBy(who string, tokens int) {
	if b.tokensBy == nil {
		b.tokensBy = map[string]int{}
	}
	b.tokensBy[who] += tokens
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
func sdk(ctx context.Context, rt http.RoundTripper, random *rand.Rand, address, body string, header http.Header, leave time.Duration) (ok bool) {
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
			if leave > 0 && response.StatusCode < 400 {
				time.Sleep(leave)
			} else {
				io.Copy(io.Discard, response.Body)
			}
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
	size    func(n int) sizes // nil: input, of tokens
	body    string
	ask     func(n int, s sizes) string // nil: the body, or a prompt of its input
	leaves  func(n int) time.Duration   // from its stream; 0: not
	address string
	header  func(n int) http.Header
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
				size := sizes{in: c.tokens, most: 1}
				if c.size != nil {
					size = c.size(n)
				}
				body := c.body
				switch {
				case c.ask != nil:
					body = c.ask(n, size)
				case body == "":
					body = fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"content":"%s"}]}`, size.most, strings.Repeat("abcd ", size.in*4/5))
				}
				h := size.header(c.name)
				if c.header != nil {
					maps.Copy(h, c.header(n))
				}
				leave := time.Duration(0)
				if c.leaves != nil {
					leave = c.leaves(n)
				}
				ok := sdk(t.Context(), c.through, random, c.address, body, h, leave)
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
		results[i].sent = b.refusedBy[c.name] + b.acceptedBy[c.name]
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
// transport had 96 of 120 calls fail, and 98 % of what it sent refused. The first 48 are refused before it can know, where the limit is given.
func TestNeighbour(t *testing.T) {
	given := Limits{RequestsPerMinute: 1e6, TokensPerMinute: 60_000}
	for _, c := range []struct {
		name   string
		bucket bool
		limits Limits // zero: learned
		opts   []Option
		failed int
		most   float64 // refused
	}{
		{"as it comes", false, given, nil, 12, 0.27},
		{"with retries", false, given, []Option{WithOutbound(outbound.WithRetries(3))}, 12, 0.27},
		{"as it comes, a bucket", true, given, nil, 12, 0.32},
		{"WithBucket, a bucket", true, given, []Option{WithBucket(time.Minute)}, 12, 0.3},
		{"learned", false, Limits{}, nil, 0, 0.02},
		{"learned, with retries", false, Limits{}, []Option{WithOutbound(outbound.WithRetries(3))}, 0, 0.02},
		{"learned, a bucket", true, Limits{}, nil, 0, 0.3}, // its first answer shows nobody
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{tpm: 60_000, rpm: 1e6, bucket: c.bucket, says: openAIs, flight: 20 * time.Millisecond}
			for i := range 60 { // it has been there for a minute
				b.take(time.Now().Add(time.Duration(i-60)*time.Second), 800)
			}
			them := crowd{name: "neighbour", n: 700, every: time.Second, tokens: 800, through: b}
			us := crowd{name: c.name, n: 120, tokens: 1000,
				through: transportTo(t, b, OpenAI(), c.limits, c.opts...)}
			r := b.run(t, us, them)[0]
			require.LessOrEqual(t, r.failed, c.failed)
			require.LessOrEqual(t, float64(r.refused), c.most*float64(r.sent))
			require.Less(t, r.took, 13*time.Minute)
		})
	}
}

// Programs of ours begin together at one quota, and want more than there is. The first burst is refused to all but one
// part of each before it can know, and next to nothing later; all have the same.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		programs, perMinute int
		flight              time.Duration
		used, refused       float64 // after the first minutes
	}{
		{2, 60, 20 * time.Millisecond, .95, .005},
		{2, 200, 3 * time.Second, .94, .005},
		{3, 200, 3 * time.Second, .93, .08},
		{5, 200, 10 * time.Second, .93, .07},
	} {
		if limitertest.Slower > 1 && c.perMinute > 60 { // there is nothing more to find
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			b, all := crowdOf(t, c.programs, c.perMinute, c.flight, 0)
			go b.after(10*time.Minute, func(tokens, refused map[string]int) {
				require.Less(t, refused["0"], c.perMinute*5/4, "in the beginning")
				time.Sleep(10 * time.Minute)
				b.compare(t, tokens, refused, 10, c.used, c.refused, .7)
			})
			b.run(t, all...)
			time.Sleep(time.Hour)
		})
	}
}

// A program that comes three minutes later gets its half, little is refused, and nearly all is used.
func TestLateProgram(t *testing.T) {
	for _, flight := range []time.Duration{20 * time.Millisecond, 3 * time.Second} {
		if limitertest.Slower > 1 && flight > time.Second {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			b, all := crowdOf(t, 2, 60, flight, 190*time.Second)
			go b.after(20*time.Minute, func(tokens, refused map[string]int) {
				require.LessOrEqual(t, refused["1"], 50)
				time.Sleep(10 * time.Minute)
				b.compare(t, tokens, refused, 10, .93, .01, .6)
			})
			b.run(t, all...)
			time.Sleep(time.Hour)
		})
	}
}

// Where there is room beside a neighbour, calls go at once, as they come.
func TestNeighbourThatLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tpm: 60_000, rpm: 1e6, says: openAIs, flight: 20 * time.Millisecond}
		through := transportTo(t, b, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: 60_000})
		all := []crowd{{name: "neighbour", n: 100, every: 6 * time.Second, tokens: 1000, through: b}}
		for i := range 5 {
			all = append(all, crowd{name: fmt.Sprint(i), n: 35, tokens: 1000, starts: time.Duration(2*i+1) * time.Minute, through: through})
		}
		for i, r := range b.run(t, all...)[1:] {
			require.Zero(t, r.refused)
			require.Less(t, r.took-all[i+1].starts, time.Second)
		}
		time.Sleep(time.Hour)
	})
}

// crowdOf returns programs that want all of a quota of calls of 1,000 tokens, for longer than half an hour. Each begins
// later than the one before it.
func crowdOf(t *testing.T, programs, perMinute int, flight, later time.Duration) (b *backend, all []crowd) {
	b = &backend{tpm: 1000 * perMinute, rpm: 1e6, says: openAIs, flight: flight}
	for i := range programs {
		transport := transportTo(t, b, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: b.tpm})
		all = append(all, crowd{name: fmt.Sprint(i), n: 40 * perMinute, tokens: 1000, starts: time.Duration(i) * later, through: transport})
	}
	return b, all
}

// after calls a function with what each program has used and had refused by then. In the end everything is allowed.
func (b *backend) after(d time.Duration, f func(tokens, refused map[string]int)) {
	time.Sleep(d)
	b.mu.Lock()
	tokens, refused := maps.Clone(b.tokensBy), maps.Clone(b.refusedBy)
	b.mu.Unlock()
	f(tokens, refused)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tpm = 1e9
}

// compare requires that in some minutes since then a part of all was used, at most a part refused, and that each program
// had at least a part of its share.
func (b *backend) compare(t *testing.T, tokens, refused map[string]int, minutes int, used, most, least float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum, no, had := 0, 0, map[string]int{}
	for name, n := range b.tokensBy {
		had[name] = n - tokens[name]
		sum, no = sum+had[name], no+b.refusedBy[name]-refused[name]
	}
	t.Log(had, "of", b.tpm*minutes, "refused", no)
	require.GreaterOrEqual(t, float64(sum), used*float64(b.tpm*minutes))
	require.LessOrEqual(t, float64(no), most*float64(sum/1000))
	for name, n := range had {
		require.GreaterOrEqual(t, float64(n*len(had)), least*float64(sum), name)
	}
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
				c := crowd{name: fmt.Sprint(p.tells, len(opts)), n: 60, tokens: 1, body: `{"model":"m"}`, through: transportTo(t, b, p, Limits{},
					append(opts, WithOutbound(outbound.WithHooks(outbound.Hooks{Throttled: func(*http.Response, string, time.Duration) { stopped.Add(1) }})))...)}
				r := b.run(t, c)[0]
				require.Zero(t, r.failed)
				require.Equal(t, int64(r.refused), stopped.Load())
			})
		}
	}
	for _, opts := range [][]Option{nil, {WithOutbound(outbound.WithRetries(3), outbound.RetryNonIdempotent(), outbound.Adaptive())}, {WithOutbound(outbound.WithRetries(6), outbound.RetryNonIdempotent())}} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{inFlight: 8, flight: 5 * time.Millisecond, takes: 2 * time.Second}
			r := b.run(t, crowd{name: "vLLM" + fmt.Sprint(len(opts)), n: 200, tokens: 1, body: `{"model":"m"}`, through: transportTo(t, b, OpenAI(), Limits{}, opts...)})[0]
			require.Zero(t, r.failed)
			require.Less(t, r.took, time.Minute)
		})
	}
}
