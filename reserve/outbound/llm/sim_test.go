package llm

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// A sized call comes at a time, and is of known size.
type sized struct {
	at            time.Duration
	input, output int
}

func (s sized) total() int { return s.input + s.output }

// realTrace is the trace of testdata, at 20 times its speed.
func realTrace(t *testing.T) (calls []sized) {
	file, err := os.Open("testdata/azure-code-2023.csv.gz")
	require.NoError(t, err)
	defer file.Close()
	text, err := gzip.NewReader(file)
	require.NoError(t, err)
	rows, err := csv.NewReader(text).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		var n [3]int
		for i := range n {
			n[i], err = strconv.Atoi(row[i])
			require.NoError(t, err)
		}
		calls = append(calls, sized{time.Duration(n[0]) * time.Millisecond / 20, n[1], n[2]})
	}
	require.Len(t, calls, 8819)
	return calls
}

// long reports whether the tests take minutes: PACE_LONG is set, as make long does.
func long() bool { return os.Getenv("PACE_LONG") != "" }

// trace returns the real trace, and a quota that it takes nine minutes to go through; or a part of it, and a fifth of
// the quota.
func trace(t *testing.T) ([]sized, quota) {
	if !long() {
		return realTrace(t)[:1000], quota{200, 400_000}
	}
	return realTrace(t), quota{1000, 2_000_000}
}

// A quota is what a provider allows in a minute.
type quota struct{ requests, tokens int }

// optimum is when the last call goes, if each goes in its turn as soon as no minute up to then holds too much. No
// client that knows all sizes, and keeps the order, is faster.
func optimum(calls []sized, q quota) time.Duration {
	went := make([]time.Duration, len(calls))
	first, tokens := 0, 0
	var now time.Duration
	for i, c := range calls {
		for now = max(now, c.at); ; now = went[first] + time.Minute {
			for first < i && went[first] <= now-time.Minute {
				tokens -= calls[first].total()
				first++
			}
			if first == i || i-first < q.requests && tokens+c.total() <= q.tokens {
				break
			}
		}
		went[i], tokens = now, tokens+c.total()
	}
	return now
}

// A provider is a simulated one, that counts in rolling minutes.
type provider struct {
	quota
	// It charges a call what it came to when it arrives; or else, with holds, its prompt and
	// max_tokens then, and what it came to when it has ended; and with keeps that is never
	// corrected.
	holds, keeps bool
	silent       bool          // tells no usage, but puts out text
	hides        int           // tokens that it holds for the reply of a call that sets no maximum
	headers      bool          // tells limits and what is left
	jitter       time.Duration // of requests on their way
	token        time.Duration // that it takes to put out a token
	random       *rand.Rand

	mu      sync.Mutex
	log     []*entry
	refused []int // the numbers of the calls that were
	arrived int
	last    time.Time
}

type entry struct {
	at     time.Time
	tokens int
}

// arrive reports whether there is room for a call, and how to settle it.
func (p *provider) arrive(held int) (settle func(actual int), left quota, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for len(p.log) > 0 && now.Sub(p.log[0].at) >= time.Minute {
		p.log = p.log[1:]
	}
	tokens := 0
	for i := range p.log {
		tokens += p.log[i].tokens
	}
	p.arrived++
	left = quota{p.requests - len(p.log), p.tokens - tokens}
	if len(p.log) > 0 && (left.requests < 1 || left.tokens < held) {
		p.refused = append(p.refused, p.arrived)
		return nil, left, false
	}
	p.last = now
	mine := &entry{now, held}
	p.log = append(p.log, mine)
	left = quota{left.requests - 1, left.tokens - held}
	return func(actual int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		mine.tokens = actual
	}, left, true
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	number := func(name string) int { n, _ := strconv.Atoi(r.Header.Get(name)); return n }
	if p.jitter > 0 {
		p.mu.Lock()
		d := time.Duration(p.random.Int64N(int64(p.jitter)))
		p.mu.Unlock()
		time.Sleep(d)
	}
	input, output := number("X-Input"), number("X-Output")
	actual, held := input+output, input+output
	if p.holds {
		held = input + max(output, number("X-Max"), p.hides)
	}
	settle, left, ok := p.arrive(held)
	h := http.Header{"Content-Type": {"application/json"}}
	if p.headers {
		h.Set("x-ratelimit-limit-requests", strconv.Itoa(p.requests))
		h.Set("x-ratelimit-limit-tokens", strconv.Itoa(p.tokens))
		h.Set("x-ratelimit-remaining-requests", strconv.Itoa(max(0, left.requests)))
		h.Set("x-ratelimit-remaining-tokens", strconv.Itoa(max(0, left.tokens)))
		h.Set("x-ratelimit-reset-requests", (time.Duration(p.requests-left.requests) * time.Minute / time.Duration(p.requests)).String())
		h.Set("x-ratelimit-reset-tokens", (time.Duration(p.tokens-left.tokens) * time.Minute / time.Duration(p.tokens)).String())
	}
	if !ok {
		h.Set("Retry-After", "1")
		return &http.Response{StatusCode: 429, Header: h, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"slow down"}}`)), Request: r}, nil
	}
	usage := fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, input, output, actual)
	if p.silent {
		h.Set("Content-Type", sse)
		usage = strings.Repeat(`data: {"choices":[{"delta":{"content":" and"}}]}`+"\n\n", output)
	}
	return &http.Response{StatusCode: 200, Header: h, Request: r, Body: &answering{
		until: time.Now().Add(time.Duration(output) * p.token), settle: func() {
			if p.holds && !p.keeps {
				settle(actual)
			}
		},
		text: strings.NewReader(usage)}}, nil
}

// answering is a body that takes its time.
type answering struct {
	until  time.Time
	settle func()
	text   io.Reader
}

func (a *answering) Read(p []byte) (int, error) {
	if d := time.Until(a.until); d > 0 {
		time.Sleep(d)
	}
	if a.settle != nil {
		a.settle()
		a.settle = nil
	}
	return a.text.Read(p)
}

func (a *answering) Close() error {
	if a.settle != nil {
		a.settle()
		a.settle = nil
	}
	return nil
}

// An outcome is that of a simulation.
type outcome struct {
	took, best time.Duration
	refused    []int
}

func (o outcome) share() float64 { return o.best.Seconds() / o.took.Seconds() }

func (o outcome) String() string {
	return fmt.Sprintf("%.2f min, at best %.2f min: %.2f %%, %d refused %v", o.took.Minutes(), o.best.Minutes(), 100*o.share(), len(o.refused),
		o.refused[:min(len(o.refused), 10)])
}

// simulate makes the calls, at their times.
func simulate(t *testing.T, calls []sized, p *provider, l Limits, body func(sized) (text string, max int), opts ...Option) (o outcome) {
	o.best = optimum(calls, p.quota)
	synctest.Test(t, func(t *testing.T) {
		p.random = rand.New(rand.NewPCG(1, 2))
		transport, err := New(p, OpenAI(), l, opts...)
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		for _, c := range calls {
			time.Sleep(max(1, c.at-time.Since(begin))) // so that they come in this order
			all.Go(func() {
				text, most := body(c)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/chat/completions", strings.NewReader(text))
				require.NoError(t, err)
				r.Header.Set("X-Input", strconv.Itoa(c.input))
				r.Header.Set("X-Output", strconv.Itoa(c.output))
				r.Header.Set("X-Max", strconv.Itoa(most))
				response, err := transport.RoundTrip(r)
				require.NoError(t, err)
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			})
		}
		all.Wait()
		o.took, o.refused = p.last.Sub(begin), p.refused
	})
	return o
}

// estimating says sizes times a factor.
func estimating(factor float64) Option {
	return WithEstimate(func(r *http.Request, _ []byte) (input, output int) {
		number := func(name string) int { n, _ := strconv.Atoi(r.Header.Get(name)); return int(float64(n)*factor + 0.5) }
		return number("X-Input"), number("X-Output")
	})
}

// bare is a body that says nothing of the size.
func bare(c sized) (string, int) { return `{"model":"gpt-5"}`, c.output }

// text is a body of four bytes for each token.
func text(c sized) (string, int) {
	return fmt.Sprintf(`{"model":"gpt-5","messages":[{"role":"user","content":"%s"}],"max_tokens":%d}`, strings.Repeat("abc ", c.input), c.output), c.output
}

// burstyTrace has bursts of calls whose sizes have a heavy tail.
func burstyTrace() (calls []sized) {
	bursts := 5
	if long() {
		bursts = 15
	}
	random := rand.New(rand.NewPCG(3, 4))
	tail := func(least, shape, most float64) int {
		return int(min(most, least*math.Pow(random.Float64(), -1/shape)))
	}
	for burst := range bursts {
		for range 200 {
			calls = append(calls, sized{time.Duration(burst) * 20 * time.Second, tail(200, 1.2, 40000), tail(20, 1.1, 2000)})
		}
	}
	return calls
}

// hugeTrace has a few calls that use up much of a minute, and many small ones.
func hugeTrace() (calls []sized) {
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 400 {
		c := sized{time.Duration(i) * 100 * time.Millisecond, 50 + random.IntN(500), 10 + random.IntN(100)}
		if i%20 == 0 {
			c.input = 20000 + random.IntN(70000)
		}
		calls = append(calls, c)
	}
	return calls
}

// noisy says sizes that are wrong by a factor of its own for each call: by more than 1.65 for a
// third of them.
func noisy() Option {
	return WithEstimate(func(r *http.Request, _ []byte) (input, output int) {
		in, _ := strconv.Atoi(r.Header.Get("X-Input"))
		out, _ := strconv.Atoi(r.Header.Get("X-Output"))
		f := math.Exp(0.5 * rand.New(rand.NewPCG(uint64(in), uint64(out))).NormFloat64())
		return int(float64(in) * f), int(float64(out) * f)
	})
}

// None is refused, and the limit is used to so many percent of what is possible.
func (o outcome) require(t *testing.T, name string, least float64) {
	t.Helper()
	t.Log(name, o)
	require.GreaterOrEqual(t, 100*o.share(), least, name)
	require.LessOrEqual(t, o.share(), 1.0, name+": nothing is faster than the optimum")
	require.Empty(t, o.refused, name)
}

// The real trace, against servers that count in different ways.
func TestRealTrace(t *testing.T) {
	calls, q := trace(t)
	l := Limits{RequestsPerMinute: q.requests, TokensPerMinute: q.tokens}
	token := 20 * time.Millisecond
	simulate(t, calls, &provider{quota: q, token: token}, l, bare, estimating(1)).require(t, "exact", 99)
	simulate(t, calls, &provider{quota: q, token: token}, l, bare, estimating(2)).require(t, "twice too high", 96)
	simulate(t, calls, &provider{quota: q, token: token}, l, bare, estimating(0.5)).require(t, "half", 95)
	simulate(t, calls, &provider{quota: q, token: token, jitter: 100 * time.Millisecond}, l, bare, estimating(1)).require(t, "jitter", 98)
	simulate(t, calls, &provider{quota: q, token: token}, l, text).require(t, "from the body", 99)
	simulate(t, calls, &provider{quota: q, token: token, headers: true}, Limits{}, text).require(t, "limits from headers", 99)
	simulate(t, calls, &provider{quota: q, token: token, holds: true}, l, text).require(t, "held and settled", 99)
	simulate(t, calls, &provider{quota: q, token: token, holds: true, keeps: true}, l, text, WithSettling(false)).require(t, "held and kept", 99)
	if o := simulate(t, calls, &provider{quota: q, token: token}, l, bare, noisy()); len(o.refused) > len(calls)/500 || o.share() < 0.95 {
		t.Error("wrong by chance", o)
	}
}

// Replies of at most 1,000 tokens, with a usage and without; and replies without a maximum, for which the server holds
// 1,024 tokens, or nothing.
func TestRepliesOfTheRealTrace(t *testing.T) {
	calls, q := trace(t)
	l := Limits{RequestsPerMinute: q.requests, TokensPerMinute: q.tokens}
	token := 20 * time.Millisecond
	generous := func(c sized) (string, int) {
		most := max(1000, c.output)
		body, _ := text(sized{c.at, c.input, most})
		return body, most
	}
	open := func(c sized) (string, int) {
		return fmt.Sprintf(`{"model":"gpt-5","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("abc ", c.input)), 0
	}
	told := simulate(t, calls, &provider{quota: q, token: token, holds: true}, l, generous)
	told.require(t, "1000 at most", 99)
	untold := simulate(t, calls, &provider{quota: q, token: token, holds: true, silent: true}, l, generous)
	t.Log("1000 at most, no usage", untold)
	require.LessOrEqual(t, untold.took.Minutes(), 1.1*told.took.Minutes())
	require.Empty(t, untold.refused)
	for _, hides := range []int{0, 1024} {
		o := simulate(t, calls, &provider{quota: q, token: token, holds: true, hides: hides}, l, open)
		t.Log("held unsaid", hides, o)
		require.LessOrEqual(t, len(o.refused), 20)
		least := 0.9 // what it takes to find that out: .94 to .95 is used
		if long() {
			least = 0.95
		}
		require.GreaterOrEqual(t, o.share(), least)
	}
}

// Other traces and limits.
func TestOtherTraces(t *testing.T) {
	atOnce := burstyTrace()
	for i := range atOnce {
		atOnce[i].at = 0
	}
	for _, c := range []struct {
		name  string
		calls []sized
		q     quota
		least float64
	}{
		{"bursts", burstyTrace(), quota{600, 400_000}, 99},
		{"all at once", atOnce, quota{6000, 400_000}, 99},
		{"a few huge ones", hugeTrace(), quota{500, 100_000}, 99},
		{"small limits", realTrace(t)[:1000], quota{100, 150_000}, 99},
	} {
		for _, token := range []time.Duration{0, 20 * time.Millisecond} {
			if limitertest.Slower > 1 && token == 0 {
				continue
			}
			l := Limits{RequestsPerMinute: c.q.requests, TokensPerMinute: c.q.tokens}
			simulate(t, c.calls, &provider{quota: c.q, token: token, headers: true}, l, bare, estimating(1)).require(t, c.name+", exact", c.least)
			simulate(t, c.calls, &provider{quota: c.q, token: token}, l, bare, estimating(2)).require(t, c.name+", twice too high", 96)
			half := simulate(t, c.calls, &provider{quota: c.q, token: token}, l, bare, estimating(0.5))
			half.require(t, c.name+", half", 95)
			simulate(t, c.calls, &provider{quota: c.q, token: token, jitter: 100 * time.Millisecond}, l, bare, estimating(1)).require(t, c.name+", jitter", 98)
		}
	}
}

// What keeps its estimates must not be settled: this is what the option is for.
func TestSettlingWithAServerThatKeeps(t *testing.T) {
	calls, q := realTrace(t)[:1500], quota{500, 1_000_000}
	l := Limits{RequestsPerMinute: q.requests, TokensPerMinute: q.tokens}
	generous := func(c sized) (string, int) {
		body, _ := text(sized{c.at, c.input, 2000})
		return body, 2000
	}
	server := func() *provider { return &provider{quota: q, holds: true, keeps: true} }
	require.NotEmpty(t, simulate(t, calls, server(), l, generous).refused)
	require.Empty(t, simulate(t, calls, server(), l, generous, WithSettling(false)).refused)
}
