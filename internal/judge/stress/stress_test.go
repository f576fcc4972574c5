package stress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeds is how many compositions a test plays.
func seeds() uint64 {
	if os.Getenv("PACE_LONG") != "" {
		return 200
	}
	return 6
}

const lasts = 250 * time.Millisecond // of one composition

// A server answers in up to 3 ms, refuses, breaks off, and breaks bodies off.
type server struct {
	mu   sync.Mutex
	rng  *rand.Rand
	body string
	well bool // from now on it only answers
}

func (s *server) draw() (kind int, takes time.Duration, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.well {
		return 0, 0, s.body
	}
	return s.rng.IntN(20), time.Duration(s.rng.IntN(3000)) * time.Microsecond, s.body
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	kind, takes, body := s.draw()
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	resp := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
	switch kind {
	case 1:
		return nil, errors.New("the connection broke")
	case 2:
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After-Ms", "5")
	case 3:
		resp.StatusCode = http.StatusServiceUnavailable
	case 4:
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), broken{}))
	case 5:
		resp.Header.Set("X-RateLimit-Limit", "100")
		resp.Header.Set("X-RateLimit-Remaining", "3")
	}
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// limits returns a limit of each kind, at rates that a short test meets.
func limits(rng *rand.Rand) reserve.Reserver {
	bursty := pace.Must(pace.NewBursty(3000, pace.WithBurst(2*time.Millisecond)))
	counted := pace.Must(window.New(100, 30*time.Millisecond))
	stored := pace.Must(shared.NewIn(shared.Memory(), "api", pace.Must(window.Policy(100, 30*time.Millisecond))))
	keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.TokenBucket(3000, 20) })
	queue := pace.Must(fair.New(counted, []fair.Class{{Name: "a", Priority: 1}, {Name: "b"}}, fair.WithTenants(nil)))
	all := []reserve.Reserver{
		bursty, counted, stored, keys.For("k"), queue.Class("b"), reserve.All(bursty, counted), reserve.All(stored, bursty), nil,
	}
	return all[rng.IntN(len(all))]
}

func transport(rng *rand.Rand, base http.RoundTripper) *outbound.Transport {
	var opts []outbound.Option
	maybe := func(o outbound.Option) {
		if rng.IntN(2) == 0 {
			opts = append(opts, o)
		}
	}
	perHost := map[string]reserve.Reserver{}
	var mu sync.Mutex
	if rng.IntN(2) == 0 {
		opts = append(opts, outbound.WithRetries(2))
		maybe(outbound.RetryNonIdempotent())
	}
	maybe(outbound.WithMaxInFlight(4))
	maybe(outbound.PauseRefused())
	maybe(outbound.WithMaxWait(20 * time.Millisecond))
	maybe(outbound.PerKey(outbound.Credential, func(key string) reserve.Reserver {
		mu.Lock()
		defer mu.Unlock()
		if perHost[key] == nil {
			perHost[key] = pace.Must(window.New(50, 20*time.Millisecond))
		}
		return perHost[key]
	}))
	maybe(outbound.WithClasses(func(r *http.Request) (class, tenant string) {
		return r.Header.Get("Class"), r.Header.Get("Tenant")
	}, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch", MaxAge: 5 * time.Millisecond}))
	if rng.IntN(3) > 0 {
		by := limits(rng)
		if by != nil && rng.IntN(2) == 0 {
			opts = append(opts, outbound.Adaptive())
		}
		return pace.Must(outbound.New(base, by, opts...))
	}
	var members []outbound.Upstream
	for i := range 3 {
		members = append(members, outbound.Upstream{
			Base: pace.Must(url.Parse(fmt.Sprintf("http://%d.example", i))), By: limits(rng), Tier: i / 2,
		})
	}
	return pace.Must(outbound.NewUpstreams(base, members, opts...))
}

// call makes a call, and treats its body as callers do: well, badly, and not at all.
func call(rng *rand.Rand, t http.RoundTripper, address, body string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(40))*time.Millisecond)
	defer cancel()
	if rng.IntN(4) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(5000))*time.Microsecond, cancel)
	}
	method, text := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, text = http.MethodPost, bytes.NewReader([]byte(body))
	}
	r := pace.Must(http.NewRequestWithContext(ctx, method, address, text))
	r.Header.Set("Authorization", []string{"a", "b"}[rng.IntN(2)])
	r.Header.Set("Class", []string{"people", "batch", ""}[rng.IntN(3)])
	r.Header.Set("Tenant", []string{"", "x", "y"}[rng.IntN(3)])
	resp, err := t.RoundTrip(r)
	if err != nil {
		return
	}
	switch rng.IntN(4) {
	case 0: // its context ends
	case 1:
		io.Copy(io.Discard, resp.Body) // to its end, without Close
	default:
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// storm has callers make calls for a while, and then sees that the transport serves the next one.
func storm(t *testing.T, seed uint64, tr http.RoundTripper, s *server, address, body string) {
	var all sync.WaitGroup
	end := time.Now().Add(lasts)
	for w := range uint64(16) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, w))
			for time.Now().Before(end) {
				call(rng, tr, address, body)
			}
		})
	}
	all.Wait()
	s.mu.Lock()
	s.well = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for { // what was learned of the server's faults may hold for a while
		r := pace.Must(http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body)))
		resp, err := tr.RoundTrip(r)
		if err == nil {
			require.NoError(t, resp.Body.Close())
			break
		}
		var late *reserve.WaitError
		require.ErrorAs(t, err, &late, "seed %d", seed)
		require.NoError(t, ctx.Err(), "seed %d: a minute later: %v", seed, err)
		time.Sleep(min(late.Wait, 100*time.Millisecond) + time.Millisecond) // real time, as all of this test
	}
}

func TestOutbound(t *testing.T) {
	watchdog.Start(t)
	for seed := range seeds() {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &server{rng: rng, body: "{}"}
		tr := transport(rand.New(rand.NewPCG(seed, 2)), s)
		storm(t, seed, tr, s, "http://api.example/", "")
		for busy(tr) { // until the contexts of the last callers have ended; the watchdog ends a wait without end
			time.Sleep(time.Millisecond)
		}
	}
}

func busy(tr *outbound.Transport) bool {
	for _, l := range tr.Snapshot().Limits {
		if l.Waiting > 0 || l.InFlight > 0 {
			return true
		}
	}
	return false
}

func TestLLM(t *testing.T) {
	watchdog.Start(t)
	const answer = `{"id": "1", "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50}}`
	const question = `{"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}`
	for seed := range seeds() {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &server{rng: rng, body: answer}
		limits := llm.Limits{RequestsPerMinute: 60_000, TokensPerMinute: 3_000_000}
		if seed%3 == 0 {
			limits = llm.Limits{}
		}
		opts := []llm.Option{llm.WithOutbound(outbound.WithRetries(int(seed % 2)))}
		tr := pace.Must(llm.New(s, llm.OpenAI(), limits, opts...))
		storm(t, seed, tr, s, "http://api.openai.com/v1/chat/completions", question)
	}
}

// Keys and stores: no key is granted more than its capacity and its rate allow, whoever else asks.
func TestKeysAndStores(t *testing.T) {
	watchdog.Start(t)
	for seed := range seeds() {
		const perSecond, capacity = 2000, 20
		policy := pace.Must(pace.TokenBucket(perSecond, capacity))
		local := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
		stored := pace.Must(shared.NewKeyedIn(shared.Memory(), policy))
		keys := []string{"a", "b", "c"}
		var mu sync.Mutex
		granted := map[string]int{}
		begin := time.Now()
		var all sync.WaitGroup
		for w := range uint64(16) {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, w))
				for time.Since(begin) < lasts {
					key := keys[rng.IntN(len(keys))]
					name, by := "local "+key, local.For(key)
					if rng.IntN(2) == 0 {
						name, by = "stored "+key, stored.For(key)
					}
					used := use(rng, by)
					mu.Lock()
					granted[name] += used
					mu.Unlock()
				}
			})
		}
		all.Wait()
		most := capacity + int(time.Since(begin).Seconds()*perSecond) + 1
		for name, n := range granted {
			require.LessOrEqual(t, n, most, "seed %d: %s", seed, name)
			require.Positive(t, n, "seed %d: %s", seed, name)
		}
	}
}

// use asks for permits in some way, and returns how many were used.
func use(rng *rand.Rand, by reserve.Reserver) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(20))*time.Millisecond)
	defer cancel()
	n := 1 + rng.IntN(5)
	r, err := by.ReserveWithin(ctx, n, time.Duration(rng.IntN(10))*time.Millisecond)
	if err != nil {
		return 0
	}
	if rng.IntN(4) == 0 {
		cancel()
	}
	if r.Wait(ctx) != nil {
		return 0
	}
	if rng.IntN(3) == 0 {
		n = rng.IntN(n + 1)
		r.Settle(n)
	}
	return n
}
