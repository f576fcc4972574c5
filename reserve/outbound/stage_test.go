package outbound

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
)

// These tests play one stage of a call each, without the others.

// prepared is a call that has found its limits.
func prepared(t *testing.T, by reserve.Reserver, r *http.Request, opts ...Option) *call {
	t.Helper()
	c := reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) { return nil, errGone }), by, opts...)).newCall(r)
	require.NoError(t, c.prepare())
	return c
}

// sent is a call whose request is out.
func sent(t *testing.T, by reserve.Reserver, r *http.Request, opts ...Option) *call {
	t.Helper()
	c := prepared(t, by, r, opts...)
	require.NoError(t, c.admit())
	c.attempt.unsent, c.attempt.phase = false, out
	return c
}

func request(method, body string) *http.Request {
	var of io.Reader
	if body != "" {
		of = strings.NewReader(body)
	}
	return reserve.Must(http.NewRequest(method, "http://a.test/path", of))
}

func costs(n int) func(*http.Request) int { return func(*http.Request) int { return n } }

// What a call asks of its limits, at each upstream.
func TestStageLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := evenly10(), evenly10()
		first, second, mute := lim.Of(l), lim.Of(other), bare{other}
		tokens := func(n int) Option { return WithLimit(Limit{Name: "tokens", Limiter: other, Cost: costs(n)}) }
		batch := WithClasses(nil, fair.Class{Limit: other})
		type asked struct {
			by      lim.Limit // nil: a place, or a pause
			permits int
			own     bool // of the class
		}
		for name, c := range map[string]struct {
			by   reserve.Reserver
			opts []Option
			want []asked
		}{
			"a limit":                    {l, nil, []asked{{by: first, permits: 1}}},
			"two":                        {l, []Option{tokens(7)}, []asked{{by: first, permits: 1}, {by: second, permits: 7}}},
			"one that does not hold":     {l, []Option{tokens(0)}, []asked{{by: first, permits: 1}}},
			"one that can't be paused":   {mute, nil, []asked{{by: lim.Of(mute), permits: 1}, {permits: 1}}},
			"a place in flight":          {l, []Option{WithMaxInFlight(3)}, []asked{{by: first, permits: 1}, {permits: 1}}},
			"one for calls like others":  {l, []Option{WithLimit(Limit{InFlight: 3, Cost: costs(0)})}, []asked{{by: first, permits: 1}}},
			"a class with its own limit": {l, []Option{batch}, []asked{{by: first, permits: 1}, {by: second, own: true}}},
		} {
			made := prepared(t, c.by, request("GET", ""), c.opts...)
			_, err := made.ask()
			require.NoError(t, err, name)
			require.Len(t, made.place.Options, 1, name)
			var got []asked
			for i, l := range made.place.Options[0].Limits {
				of := asked{l.By, l.Permits, l.Own}
				if i < len(c.want) && c.want[i].by == nil {
					of.by = nil
				}
				got = append(got, of)
			}
			require.Equal(t, c.want, got, name)
		}

		unknown := prepared(t, reserve.Must(pace.NewBursty(math.Inf(1))), request("GET", ""), Adaptive())
		_, err := unknown.ask()
		require.NoError(t, err)
		require.Equal(t, lim.Of(unknown.attempt.way.charges[0].rate.probe), unknown.place.Options[0].Limits[1].By)

		base := reserve.Must(url.Parse("http://b.test"))
		two := reserve.Must(NewUpstreams(nil, []Upstream{{Base: base, By: l}, {Base: base, By: other, Tier: 1}})).newCall(request("GET", ""))
		require.NoError(t, two.prepare())
		_, err = two.ask()
		require.NoError(t, err)
		for i, by := range []reserve.Reserver{l, other} {
			option := two.place.Options[i]
			require.Equal(t, i, option.Tier)
			require.Len(t, option.Limits, 2)
			require.Equal(t, lim.Of(by), option.Limits[0].By)
			require.Equal(t, lim.Of(two.ways[i].upstream.pause), option.Limits[1].By, "a failing upstream rests")
		}
	})
}

// Calls with the same limits and keys have one line; others have another.
func TestStageLine(t *testing.T) {
	transport := reserve.Must(New(nil, evenly10(), WithMaxInFlight(3, Host),
		PerKey(func(r *http.Request) string { return r.URL.Path }, func(string) reserve.Reserver { return evenly10() }),
		WithLimit(Limit{Name: "b", Limiter: evenly10()}), WithLimit(Limit{Name: "c", Limiter: evenly10()}),
	))
	line := func(url string) *line {
		c := transport.newCall(reserve.Must(http.NewRequest("GET", url, nil)))
		require.NoError(t, c.prepare())
		return reserve.Must(c.ask())
	}
	first := line("http://a/1")
	require.Same(t, first, line("http://a/1"))
	require.NotSame(t, first, line("http://a/2"))
	require.NotSame(t, first, line("http://b/1"))
}

// A place in flight comes back however the call ends, and with a response when its body is over.
func TestStageInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(c *call) (held bool)
	}{
		"granted, and not sent": {func(c *call) bool { c.attempt.phase = granted; c.attempt.end(); return false }},
		"sent without a response": {func(c *call) bool {
			c.attempt.end()
			c.attempt.end() // does nothing
			return false
		}},
		"refused, and sent again": {func(c *call) bool {
			c.attempt.response = status(429)
			c.attempt.phase = idle
			require.True(t, c.again(time.Second))
			return false
		}},
		"with a response": {func(c *call) bool {
			c.attempt.response = ok("body")
			c.attempt.phase = idle
			body := c.attempt.deliver().Body
			c.attempt.end()
			_, err := io.ReadFull(body, make([]byte, 4))
			require.NoError(t, err)
			require.Equal(t, 1, c.states[0].taken(), "the server may still work on it")
			_, err = io.ReadAll(body)
			require.NoError(t, err)
			require.Zero(t, c.states[0].taken())
			require.NoError(t, body.Close())
			return false
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := sent(t, nil, request("GET", ""), WithLimit(Limit{InFlight: 2}))
				places := made.states[0]
				require.Equal(t, 1, places.taken())
				c.ends(made)
				require.Zero(t, places.taken())
			})
		})
	}
}

// What a response does to the limits, whatever the call does next.
func TestStageObey(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		response *http.Response
		opts     []Option
		stopped  time.Duration // of New's limit
		blamed   []string      // as the Throttled hook is told
		again    bool
	}{
		"an acceptance":              {response: status(200)},
		"nothing left":               {response: status(200, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 7"), stopped: 7 * s},
		"a refusal with a time":      {response: status(429, "Retry-After: 5"), stopped: 5 * s, blamed: []string{""}, again: true},
		"without a time":             {response: status(429), blamed: []string{""}, again: true},
		"one that stops only itself": {response: status(429, "Retry-After: 5"), opts: []Option{PauseRefused()}, blamed: []string{""}, again: true},
		"too long a time":            {response: status(429, "Retry-After: 900"), stopped: 300 * s, blamed: []string{""}},
		"a penalty": {
			response: status(429), blamed: []string{"tokens"}, again: true,
			opts: []Option{WithLimit(Limit{Name: "tokens", Limiter: evenly10(), Penalty: 9 * s}), WithDialect(Dialect{Reason: "Reason"})},
		},
		"too many in flight": {
			response: status(429, "Reason: calls", "Retry-After: 5"), blamed: []string{"calls"}, again: true,
			opts: []Option{WithLimit(Limit{Name: "calls", InFlight: 3}), WithDialect(Dialect{Reason: "Reason"})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if name == "a penalty" {
					c.response.Header.Set("Reason", "tokens")
				}
				var blamed []string
				hook := WithHooks(Hooks{Throttled: func(_ *http.Response, limit string, _ time.Duration) { blamed = append(blamed, limit) }})
				made := sent(t, reserve.Must(pace.NewBursty(1e6)), request("GET", ""), append(c.opts, hook, WithRetries(1))...)
				defer made.attempt.end()
				made.attempt.response = c.response
				v := made.obey()
				require.Equal(t, c.again, v.again)
				require.Equal(t, c.blamed, blamed)
				var stopped time.Duration
				if end := made.attempt.way.charges[0].state.stop(time.Now()); !end.IsZero() {
					stopped = time.Until(end).Round(s)
				}
				require.Equal(t, c.stopped, stopped)
				require.Equal(t, idle, made.attempt.phase, "it is settled")
			})
		})
	}
}

// Whether a call is sent again, and as what.
func TestStageRetry(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		method, body string
		once         bool // the body can't be read again
		after        time.Duration
		deadline     time.Duration
		opts         []Option
		want         bool
	}{
		"without a body":                {method: "GET", after: s, want: true},
		"with one":                      {method: "POST", body: "x", after: s, want: true},
		"with one that is gone":         {method: "POST", body: "x", once: true, after: s},
		"before the deadline":           {method: "GET", after: s, deadline: 2 * s, want: true},
		"after the deadline":            {method: "GET", after: 3 * s, deadline: 2 * s},
		"within WithMaxWait":            {method: "GET", after: s, opts: []Option{WithMaxWait(s)}, want: true},
		"beyond it":                     {method: "GET", after: 2 * s, opts: []Option{WithMaxWait(s)}},
		"in its turn":                   {method: "GET", want: true},
		"its turn is too late":          {method: "GET", opts: []Option{WithMaxWait(10 * time.Millisecond)}},
		"within the budget":             {method: "GET", after: s, opts: []Option{WithRetryBudget(1)}, want: true},
		"a budget that is used up":      {method: "GET", after: s, opts: []Option{WithRetryBudget(0), spent}},
		"a context that is over by now": {method: "GET", after: s, deadline: -s},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := request(c.method, c.body)
				if c.once {
					r.GetBody = nil
				}
				made := sent(t, evenly10(), r, append(c.opts, WithRetries(1))...)
				defer made.attempt.end()
				if c.deadline != 0 {
					ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
					defer cancel()
					made.request = made.request.WithContext(ctx)
				}
				refusal := &body{Reader: strings.NewReader("too many")}
				made.attempt.response = status(429)
				made.attempt.response.Body = refusal
				made.attempt.heard, made.attempt.phase = time.Now(), idle
				require.Equal(t, c.want, made.again(c.after))
				if !c.want {
					require.Equal(t, 1, made.tries.number)
					require.Zero(t, refusal.closed.Load(), "it is the caller's")
					return
				}
				require.Equal(t, 2, made.tries.number)
				require.Equal(t, int64(1), refusal.closed.Load())
				if c.body != "" {
					require.Equal(t, c.body, string(reserve.Must(io.ReadAll(made.attempt.outgoing.Body))))
				}
				begin := time.Now()
				require.NoError(t, made.backOff(t.Context()))
				require.Equal(t, c.after, time.Since(begin))
			})
		})
	}
}

// spent uses up the budget of a transport.
func spent(s *settings) error {
	for s.budget.retry() {
	}
	return nil
}

// What a call is charged in the end.
func TestStageSettle(t *testing.T) {
	used := func(n int, known bool) func(*http.Response) Usage {
		return func(*http.Response) Usage { return told(func() (int, bool) { return n, known }) }
	}
	for name, c := range map[string]struct {
		limit   Limit
		refused bool
		ends    func(*attempt) // nil: the body is read and closed
		early   int            // of 100, when the response has come
		want    int            // in the end
	}{
		"the estimate":            {early: 100, want: 100},
		"what it used":            {limit: Limit{Used: used(30, true)}, early: 100, want: 30},
		"more than the estimate":  {limit: Limit{Used: used(150, true)}, early: 100, want: 150},
		"a use that is not known": {limit: Limit{Used: used(0, false)}, early: 100, want: 100},
		"no usage":                {limit: Limit{Used: func(*http.Response) Usage { return nil }}, early: 100, want: 100},
		"nothing: it was refused": {limit: Limit{Used: used(30, true)}, refused: true},
		"lost":                    {ends: (*attempt).end, early: 100, want: 100},
		"lost, and known": {
			limit: Limit{Lost: func(*http.Request) (int, bool) { return 10, true }}, ends: (*attempt).end, early: 100, want: 10,
		},
		"not sent": {ends: func(a *attempt) { a.phase = granted; a.end() }, early: 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := reserve.Must(pace.NewBursty(100, pace.WithBurst(0)))
				charged := func() int {
					return int(time.Until(limiter.NextFree()).Round(10*time.Millisecond) / (10 * time.Millisecond))
				}
				c.limit.Limiter, c.limit.Cost = limiter, costs(100)
				made := sent(t, nil, request("GET", ""), WithLimit(c.limit))
				if c.ends != nil {
					require.Equal(t, c.early, charged())
					c.ends(&made.attempt)
					require.Equal(t, c.want, charged())
					return
				}
				made.attempt.response = ok("body")
				made.attempt.settle(c.refused)
				require.Equal(t, c.early, charged())
				response := made.attempt.deliver()
				_, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, c.want, charged())
				made.attempt.end()
				require.Equal(t, c.want, charged(), "it is settled once")
			})
		})
	}
}
