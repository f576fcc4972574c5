package llm

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A bucketServer counts in token buckets, as Anthropic says that it does: one of requests, one of input, one of output.
// A call holds max_tokens of output, and gives back what it has not put out when it ends.
type bucketServer struct {
	limits [3]float64 // a minute; what the buckets hold is that of capacity
	held   time.Duration

	mu      sync.Mutex
	levels  [3]float64
	at      time.Time
	refused int
	last    time.Time
}

func (s *bucketServer) pass(now time.Time) {
	for i, limit := range s.limits {
		full := limit * s.held.Minutes()
		if s.at.IsZero() {
			s.levels[i] = full
		}
		s.levels[i] = min(full, s.levels[i]+limit*now.Sub(s.at).Minutes())
	}
	s.at = now
}

func (s *bucketServer) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	number := func(name string) float64 { n, _ := strconv.Atoi(r.Header.Get(name)); return float64(n) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(time.Now())
	need := [3]float64{1, number("X-Input"), number("X-Max")}
	for i, n := range need {
		if s.levels[i] < n {
			s.refused++
			return says(429, "{}", "Retry-After: 1"), nil
		}
	}
	for i, n := range need {
		s.levels[i] -= n
	}
	s.last = time.Now()
	output := number("X-Output")
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {doc}}, Body: &answering{
		until: time.Now().Add(time.Duration(output) * 20 * time.Millisecond), settle: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pass(time.Now())
			s.levels[2] = min(s.limits[2]*s.held.Minutes(), s.levels[2]+need[2]-output)
		},
		text: strings.NewReader(`{"usage":{"input_tokens":` + r.Header.Get("X-Input") + `,"output_tokens":` + r.Header.Get("X-Output") + `}}`)}}, nil
}

// best is when the last call goes, if each goes in its turn as soon as the buckets have room for what it uses.
func (s *bucketServer) best(calls []sized) time.Duration {
	begin := time.Unix(0, 0)
	var now time.Duration
	for _, c := range calls {
		need := [3]float64{1, float64(c.input), float64(c.output)}
		now = max(now, c.at)
		s.pass(begin.Add(now))
		wait := 0.0
		for i, n := range need {
			wait = max(wait, (n-s.levels[i])/s.limits[i])
		}
		now += time.Duration(wait * float64(time.Minute))
		s.pass(begin.Add(now))
		for i, n := range need {
			s.levels[i] -= n
		}
	}
	return now
}

// Against token buckets, buckets reach the optimum, where windows reach two thirds of it.
func TestBuckets(t *testing.T) {
	calls, q := trace(t)
	output := max(q.tokens/20, 60_000) // ten seconds' worth is enough for the largest call
	l := Limits{RequestsPerMinute: q.requests, InputTokensPerMinute: q.tokens, OutputTokensPerMinute: output}
	for _, c := range []struct {
		name  string
		held  time.Duration
		least float64
		opts  []Option
	}{
		{"windows", time.Minute, 0, []Option{WithBucket(0)}},
		{"a minute's worth, as nothing is said", time.Minute, 95, nil},
		{"ten seconds' worth", 10 * time.Second, 95, []Option{WithBucket(10 * time.Second)}},
	} {
		server := func() *bucketServer {
			return &bucketServer{limits: [3]float64{float64(q.requests), float64(q.tokens), float64(output)}, held: c.held}
		}
		best := server().best(calls)
		synctest.Test(t, func(t *testing.T) {
			s := server()
			transport, err := New(s, Anthropic(), l, c.opts...)
			require.NoError(t, err)
			begin := time.Now()
			var all sync.WaitGroup
			for _, c := range calls {
				time.Sleep(max(1, c.at-time.Since(begin)))
				all.Go(func() {
					body, _ := text(sized{c.at, c.input, 4 * c.output})
					status, err := post(transport, "https://a/v1/messages", body, "X-Input: "+strconv.Itoa(c.input), "X-Output: "+strconv.Itoa(c.output), "X-Max: "+strconv.Itoa(4*c.output))
					require.NoError(t, err)
					require.Equal(t, 200, status)
				})
			}
			all.Wait()
			share := 100 * best.Seconds() / s.last.Sub(begin).Seconds()
			t.Logf("%s: %.2f min, at best %.2f: %.1f %%, %d refused", c.name, s.last.Sub(begin).Minutes(), best.Minutes(), share, s.refused)
			if c.least > 0 {
				require.GreaterOrEqual(t, share, c.least)
			}
			require.Zero(t, s.refused)
		})
	}
}

// 76 calls at Anthropic's bucket of 60 a minute: 60 go at once, and one a second follows. A window would take a minute.
func TestAnthropicIsABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := reserve.Must(pace.NewTokenBucket(1, 60))
		refused := 0
		transport := reserve.Must(New(answer(func(*http.Request, string) *http.Response {
			if !server.TryAcquire(1) {
				refused++
				return says(429, "{}")
			}
			return says(200, `{"usage":{"input_tokens":10,"output_tokens":1}}`)
		}), Anthropic(), Limits{RequestsPerMinute: 60}))
		begin := time.Now()
		var all sync.WaitGroup
		for range 76 {
			all.Go(func() { _, _ = post(transport, "https://a/v1/messages", `{"model":"m","max_tokens":5}`) })
		}
		all.Wait()
		require.Zero(t, refused)
		require.InDelta(t, 16.5, time.Since(begin).Seconds(), 1)
	})
}
