package outbound_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// TestRandom plays random programs: options, servers, cancellations, upstreams, classes and Begin. Whatever they are, no call
// waits for ever, none is accepted twice, none is sent more often than allowed, all bodies are closed, no server sees more
// requests at a time than allowed, and no limit of a fixed rate is exceeded. PACE_RANDOM says how many there are (3,000
// with PACE_LONG), PACE_SEED with which one they begin.
func TestRandom(t *testing.T) {
	runs, seed := 150, uint64(1)
	if os.Getenv("PACE_LONG") != "" {
		runs = 3000
	}
	if n, err := strconv.Atoi(os.Getenv("PACE_RANDOM")); err == nil {
		runs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("PACE_SEED"), 10, 64); err == nil {
		seed = n
	}
	seeds := []uint64{5887} // once, a wait that had given its permits back was bound again
	for i := range uint64(runs) {
		seeds = append(seeds, seed+i)
	}
	for _, seed := range seeds {
		p := &program{T: t, rand: rand.New(rand.NewPCG(seed, 7)), seed: seed}
		t.Run(strconv.FormatUint(p.seed, 10), func(t *testing.T) { synctest.Test(t, p.play) })
		if t.Failed() {
			t.FailNow()
		}
	}
}

// A program is a transport with random options, its servers, and its calls.
type program struct {
	*testing.T
	rand *rand.Rand // used by the main goroutine alone
	seed uint64

	transport *outbound.Transport
	retries   int
	upstreams int
	inFlight  int // 0: any number
	limits    int
	begun     time.Time
	fixed     []*fixed

	mu     sync.Mutex
	busy   map[*http.Request]bool
	most   int
	bodies atomic.Int64 // open ones, of requests and responses
	calls  map[string]*played
}

// A fixed limit has a rate that nobody changes.
type fixed struct {
	rate float64
	mu   sync.Mutex
	sent map[string][]time.Time
	key  func(*http.Request) string
}

// A played call is what the servers have seen of it.
type played struct{ sent, accepted int }

func (p *program) chance(of float64) bool { return p.rand.Float64() < of }

// tracked is a body that is counted until it is closed.
type tracked struct {
	io.Reader
	once *sync.Once
	open *atomic.Int64
}

func (p *program) body(text string) tracked {
	p.bodies.Add(1)
	return tracked{bytes.NewReader([]byte(text)), new(sync.Once), &p.bodies}
}

func (b tracked) Close() error { b.once.Do(func() { b.open.Add(-1) }); return nil }

// host is the key of a call for limits by key.
func host(r *http.Request) string { return r.Header.Get("Key") }

// options draws a transport.
func (p *program) options() (limiter reserve.Reserver, opts []outbound.Option) {
	adaptive := p.chance(0.5)
	rate := func() float64 {
		if p.chance(0.4) {
			return math.Inf(1)
		}
		return []float64{0.5, 5, 50}[p.rand.IntN(3)]
	}
	fix := func(rate float64, key func(*http.Request) string) {
		if !adaptive && !math.IsInf(rate, 1) {
			p.fixed = append(p.fixed, &fixed{rate: rate, key: key, sent: map[string][]time.Time{}})
		}
	}
	if adaptive {
		opts = append(opts, outbound.Adaptive())
	}
	if p.chance(0.5) {
		p.limits++
		r := rate()
		limiter = evenly(r)
		fix(r, func(*http.Request) string { return "" })
		if p.chance(0.3) {
			limiter = reserve.All(limiter) // it can't be paused
		}
	}
	if p.chance(0.4) {
		p.limits++
		r, hosts := rate(), map[string]*reserve.Limiter{}
		var mu sync.Mutex
		fix(r, host)
		opts = append(opts, outbound.PerKey(host, func(key string) reserve.Reserver {
			mu.Lock()
			defer mu.Unlock()
			if hosts[key] == nil {
				hosts[key] = evenly(r)
			}
			return hosts[key]
		}))
	}
	if p.chance(0.4) {
		p.limits++
		l := outbound.Limit{Name: "tokens", Limiter: evenly(1000), Cost: func(*http.Request) int { return 100 }}
		if p.chance(0.3) {
			l.Limiter = reserve.Must(window.New(1000, time.Second))
		}
		if p.chance(0.5) {
			l.Used = func(*http.Response) outbound.Usage { return used(50) }
		}
		if p.chance(0.3) {
			l.Recost = func(*http.Request) int { return 80 }
		}
		opts = append(opts, outbound.WithLimit(l))
	}
	if p.chance(0.4) {
		p.limits++
		p.inFlight = 1 + p.rand.IntN(3)
		opts = append(opts, outbound.WithMaxInFlight(p.inFlight))
	}
	if p.chance(0.5) {
		p.retries = 1 + p.rand.IntN(3)
		opts = append(opts, outbound.WithRetries(p.retries), outbound.RetryNonIdempotent())
		if p.chance(0.4) {
			opts = append(opts, outbound.WithRetryBudget(0.2))
		}
		if p.chance(0.4) {
			opts = append(opts, outbound.PauseRefused())
		}
	}
	if p.chance(0.2) {
		opts = append(opts, outbound.WithMaxWait(time.Duration(p.rand.IntN(20))*time.Second))
	}
	if p.chance(0.3) {
		opts = append(opts, outbound.WithClasses(nil, twoClasses...))
	}
	return limiter, opts
}

// make makes the transport.
func (p *program) make() {
	limiter, opts := p.options()
	var err error
	if p.chance(0.3) {
		p.limits++
		p.upstreams = 1 + p.rand.IntN(3)
		var members []outbound.Upstream
		for i := range p.upstreams {
			u := outbound.Upstream{Base: address(fmt.Sprintf("http://up%d", i)), Tier: p.rand.IntN(2)}
			if p.chance(0.7) {
				u.By = evenly([]float64{1, 10}[p.rand.IntN(2)])
			}
			members = append(members, u)
		}
		if limiter != nil {
			opts = append(opts, outbound.WithLimit(outbound.Limit{Name: "requests", Limiter: limiter}))
		}
		p.transport, err = outbound.NewUpstreams(p, members, opts...)
	} else {
		p.transport, err = outbound.New(p, limiter, opts...)
	}
	require.NoError(p, err)
}

// RoundTrip is the server: what it does with the call's attempt is drawn from the seed, the call and the attempt.
func (p *program) RoundTrip(r *http.Request) (*http.Response, error) {
	p.enter(r)
	left := sync.OnceFunc(func() { p.mu.Lock(); delete(p.busy, r); p.mu.Unlock() })
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	id := r.Header.Get("Id")
	p.mu.Lock()
	call := p.calls[id]
	call.sent++
	draw := rand.New(rand.NewPCG(p.seed, uint64(call.sent)<<32+uint64(len(id))*1e6+uint64(id[len(id)-1])))
	p.mu.Unlock()
	p.note(r)
	select {
	case <-time.After(time.Duration(draw.IntN(300)) * time.Millisecond):
	case <-r.Context().Done():
		left()
		return nil, context.Cause(r.Context())
	}
	status := 200
	var header []string
	switch draw.IntN(14) {
	case 0:
		left()
		return nil, errBroken
	case 1:
		status = 503
	case 2:
		status, header = 429, []string{"Retry-After", strconv.Itoa(draw.IntN(4))}
	case 3:
		status, header = 429, []string{"X-Ratelimit-Global", "true", "Retry-After", "1"}
	case 4:
		status, header = 429, []string{"X-Ratelimit-Bucket", "b" + id[:1], "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset-After", "2"}
	case 5:
		status, header = 200, []string{"X-Ratelimit-Bucket", "b" + id[:1], "X-Ratelimit-Remaining", "1", "X-Ratelimit-Reset-After", "2"}
	case 6:
		status = 429
	case 7:
		status, header = 200, []string{"Ratelimit-Policy", `"q";q=10;w=1`, "Ratelimit", `"q";r=0;t=1`}
	case 8:
		status = 500
	}
	if status == 200 {
		p.mu.Lock()
		call.accepted++
		p.mu.Unlock()
	}
	response := replyWith(status, "")
	for i := 0; i < len(header); i += 2 {
		response.Header.Set(header[i], header[i+1])
	}
	response.Request = r
	response.Body = leaving{p.body("some text"), left}
	return response, nil
}

// leaving is a body of which the server is busy until it is closed or was read to its end.
type leaving struct {
	io.ReadCloser
	left func()
}

func (l leaving) Close() error { l.left(); return l.ReadCloser.Close() }

func (l leaving) Read(b []byte) (n int, err error) {
	if n, err = l.ReadCloser.Read(b); err != nil {
		l.left()
	}
	return n, err
}

// enter counts the requests that the server is busy with. A request whose context has ended has no place any more.
func (p *program) enter(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == nil {
		p.busy = map[*http.Request]bool{}
	}
	p.busy[r] = true
	n := 0
	for other := range p.busy {
		if other.Context().Err() == nil {
			n++
		}
	}
	p.most = max(p.most, n)
}

// note notes when a limit of a fixed rate has let a call go.
func (p *program) note(r *http.Request) {
	for _, f := range p.fixed {
		f.mu.Lock()
		f.sent[f.key(r)] = append(f.sent[f.key(r)], time.Now())
		f.mu.Unlock()
	}
}

func (p *program) play(t *testing.T) {
	p.T = t
	p.calls = map[string]*played{}
	p.make()
	ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
	defer stop()
	p.begun = time.Now()
	var all sync.WaitGroup
	for i := range 10 + p.rand.IntN(30) {
		id := fmt.Sprintf("%c%d", 'a'+rune(p.rand.IntN(3)), i)
		p.mu.Lock()
		p.calls[id] = new(played)
		p.mu.Unlock()
		own, cancel := ctx, context.CancelFunc(func() {})
		switch p.rand.IntN(4) {
		case 0:
			own, cancel = context.WithTimeout(ctx, time.Duration(1+p.rand.IntN(20000))*time.Millisecond)
		case 1:
			own, cancel = context.WithCancel(ctx)
			time.AfterFunc(time.Duration(1+p.rand.IntN(5000))*time.Millisecond, cancel)
		}
		after := time.Duration(p.rand.IntN(3000)) * time.Millisecond
		class := twoClasses[p.rand.IntN(2)].Name
		begins, post, reads := p.upstreams == 0 && p.chance(0.2), p.chance(0.3), p.chance(0.8)
		all.Go(func() {
			defer cancel()
			time.Sleep(after)
			p.call(fair.With(own, class, ""), id, begins, post, reads)
		})
	}
	all.Wait()
	require.Less(t, time.Since(p.begun), 12*time.Hour, "a call waits for ever")
	p.check()
}

// call makes one call.
func (p *program) call(ctx context.Context, id string, begins, post, reads bool) {
	method, body := "GET", io.Reader(nil)
	if post {
		method, body = "POST", bytes.NewReader([]byte("request"))
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://server"+id[:1]+"/path/"+id, body)
	require.NoError(p, err)
	r.Header = http.Header{"Id": {id}, "Key": {id[:1]}}
	if post {
		r.GetBody = func() (io.ReadCloser, error) { return p.body("request"), nil }
		r.Body, _ = r.GetBody()
	}
	if begins {
		p.begin(r)
		return
	}
	response, err := p.transport.RoundTrip(r)
	if err != nil {
		var wait *reserve.WaitError
		if !errors.Is(err, errBroken) && !errors.As(err, &wait) {
			require.Error(p, ctx.Err(), "%v", err)
		}
		return
	}
	if reads {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	response.Body.Close()
}

// begin makes the call by Begin, and the server's answer is told.
func (p *program) begin(r *http.Request) {
	a, err := p.transport.Begin(r)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return
	}
	defer a.Close()
	response, err := p.RoundTrip(r)
	if err == nil {
		a.Answered(response)
	}
}

// check checks what is to hold at the end.
func (p *program) check() {
	require.Zero(p, p.bodies.Load(), "bodies that were not closed")
	require.Empty(p, p.busy)
	if p.inFlight > 0 {
		require.LessOrEqual(p, p.most, p.inFlight)
	}
	for id, call := range p.calls {
		require.LessOrEqual(p, call.accepted, 1, id)
		require.LessOrEqual(p, call.sent, (1+p.retries)*max(1, p.upstreams), id)
	}
	for _, f := range p.fixed {
		gap := time.Duration(float64(time.Second) / f.rate)
		for key, sent := range f.sent {
			for i := 1; i < len(sent); i++ {
				require.GreaterOrEqual(p, sent[i].Sub(p.begun), time.Duration(i)*(gap-time.Microsecond), "key %q: call %d", key, i)
				if p.limits == 1 { // of several limits a call may keep the permits of the others while it waits for the last
					require.GreaterOrEqual(p, sent[i].Sub(sent[i-1]), gap-time.Microsecond, "key %q: call %d", key, i)
				}
			}
		}
	}
}
