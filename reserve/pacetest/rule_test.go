package pacetest_test

import (
	"cmp"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

// Rules let in what they say, and what a refusal says is when there is room again.
func TestRules(t *testing.T) {
	type call struct {
		at         time.Duration
		retryAfter string // in milliseconds; "": it is let in
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		rule  pacetest.Rule
		calls []call
	}{
		"window": {pacetest.Window(2, time.Second), []call{
			{0, ""}, {300 * ms, ""}, {400 * ms, "600"}, {999 * ms, "1"}, {1000 * ms, ""}, {1000 * ms, "300"}, {1300 * ms, ""}}},
		"fixed windows": {pacetest.FixedWindow(2, time.Second), []call{
			{900 * ms, ""}, {900 * ms, ""}, {900 * ms, "100"}, {1000 * ms, ""}, {1000 * ms, ""}, {1250 * ms, "750"}}},
		"bucket": {pacetest.Bucket(10, 2), []call{
			{0, ""}, {0, ""}, {0, "100"}, {60 * ms, "40"}, {100 * ms, ""}, {100 * ms, "100"},
			{1000 * ms, ""}, {1000 * ms, ""}, {1000 * ms, "100"}}},
		"unlimited": {pacetest.Unlimited(), []call{{0, ""}, {0, ""}, {0, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := reserve.Must(pacetest.New(c.rule, pacetest.WithDialect(pacetest.RetryAfterMs)))
				client := pacetest.Client(t, server)
				begin := time.Now()
				for i, call := range c.calls {
					pass(call.at - time.Since(begin))
					r, err := client.Get("http://a")
					require.NoError(t, err)
					r.Body.Close()
					require.Equal(t, call.retryAfter, r.Header.Get("Retry-After-Ms"), "call %d", i)
					require.Equal(t, call.retryAfter != "", r.StatusCode == 429, "call %d", i)
					require.Equal(t, call.retryAfter == "", server.Calls()[i].Accepted)
					require.Equal(t, begin.Add(call.at), server.Calls()[i].At)
				}
				require.Len(t, c.calls, len(server.Accepted())+len(server.Refused()))
			})
		})
	}
}

// Calls in flight have their place until they have been answered, also if they fail.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := reserve.Must(pacetest.New(pacetest.InFlight(2), pacetest.WithDialect(pacetest.Unavailable),
			pacetest.WithHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				pass(time.Second)
				if r.URL.Path == "/panic" {
					panic(http.ErrAbortHandler)
				}
			}))))
		client := pacetest.Client(t, server)
		statuses := make(chan int, 3)
		get := func(path string) {
			r, err := client.Get("http://a" + path)
			if err != nil {
				statuses <- 0
				return
			}
			r.Body.Close()
			require.Empty(t, r.Header.Get("Retry-After"), "when is not known")
			statuses <- r.StatusCode
		}
		for range 2 {
			for _, path := range []string{"/", "/panic", "/third"} {
				go get(path)
				synctest.Wait()
			}
			require.Equal(t, 503, <-statuses)
			pass(time.Second)
			synctest.Wait()
			require.ElementsMatch(t, []int{0, 200}, []int{<-statuses, <-statuses})
		}
		require.Equal(t, 3, server.MostInFlight())
		require.Len(t, server.Refused(), 2)
	})
}

// A call is let in by all limits, or takes nothing of any; what it is told is the longest time.
func TestSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := 60
		server := reserve.Must(pacetest.New(pacetest.Window(2, time.Second), pacetest.WithDialect(pacetest.OpenAI),
			pacetest.WithLimit("tokens", pacetest.Bucket(10, 100), func(*http.Request) int { return cost })))
		client := pacetest.Client(t, server)
		get := func() http.Header {
			r, err := client.Get("http://a")
			require.NoError(t, err)
			r.Body.Close()
			return r.Header
		}
		h := get()
		require.Equal(t, "1", h.Get("X-Ratelimit-Remaining-Requests"))
		require.Equal(t, "40", h.Get("X-Ratelimit-Remaining-Tokens"))
		require.Equal(t, "6s", h.Get("X-Ratelimit-Reset-Tokens"))
		h = get()
		require.Equal(t, "2000", h.Get("Retry-After-Ms"))
		require.Equal(t, "1", h.Get("X-Ratelimit-Remaining-Requests"), "it has taken none")
		cost = 0
		require.Empty(t, get().Get("Retry-After-Ms"))
		require.Equal(t, "1000", get().Get("Retry-After-Ms"))
		cost = 45
		require.Equal(t, "1000", get().Get("Retry-After-Ms"), "for the requests; for the tokens it would be 500")
		cost = 101
		pass(time.Minute)
		require.Empty(t, get().Get("Retry-After-Ms"), "no wait would help")
		require.Len(t, server.Accepted(), 2)
	})
}

// A rule is a description: servers with the same one count apart.
func TestRuleIsNotShared(t *testing.T) {
	rule := pacetest.Window(1, time.Hour)
	for range 2 {
		client := pacetest.Client(t, reserve.Must(pacetest.New(rule)))
		r, err := client.Get("http://a")
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, 200, r.StatusCode)
	}
}

// What makes no sense is named.
func TestBadInput(t *testing.T) {
	fine := pacetest.Unlimited()
	made := func(rule pacetest.Rule, opts ...pacetest.Option) error {
		_, err := pacetest.New(rule, opts...)
		return err
	}
	for text, err := range map[string]error{
		"Window is 0; want at least 1 permit":      made(pacetest.Window(0, time.Second)),
		"FixedWindow is -1s; want a positive time": made(pacetest.FixedWindow(1, -time.Second)),
		"Bucket is NaN; want a positive number of permits per second": made(
			pacetest.Bucket(math.NaN(), 1)),
		"Bucket is 0; want a size of at least 1": made(pacetest.Bucket(1, 0)),
		"InFlight is 0; want at least 1":         made(pacetest.InFlight(0)),
		"the rule of requests is <nil>; want one from Window, FixedWindow, Bucket, InFlight or Unlimited": made(
			pacetest.Rule{}),
		"the cost of tokens is <nil>; want a function": made(fine, pacetest.WithLimit("tokens", fine, nil)),
		"WithHandler is <nil>; want a handler":         made(fine, pacetest.WithHandler(nil)),
		"the status of WithDialect is 99; want an HTTP status": made(fine,
			pacetest.WithDialect(pacetest.Dialect{Status: 99})),
		"an option is <nil>; want one that is not nil": made(fine, nil),
		"Client is <nil>; want a handler": func() (err error) {
			defer func() { err, _ = recover().(error) }()
			pacetest.Client(t, nil)
			return nil
		}(),
	} {
		require.EqualError(t, err, "pacetest: "+text)
		require.IsType(t, &reserve.ValueError{}, err)
	}
	var handler http.HandlerFunc
	require.EqualError(t, made(fine, pacetest.WithHandler(handler)), "pacetest: WithHandler is <nil>; want a handler")
}

// Where it is not known when there is room again, no dialect says a time: a client would come back at
// once.
func TestNoTimeIsSaid(t *testing.T) {
	for _, d := range dialects {
		for name, refuse := range map[string]func(*pacetest.Server){
			"in flight": func(*pacetest.Server) {},
			"script":    func(s *pacetest.Server) { s.Script(pacetest.Answer{Refuse: true}) },
		} {
			t.Run(d.Name+" "+name, func(t *testing.T) {
				var inside *httptest.ResponseRecorder
				var server *pacetest.Server
				ask := func() *httptest.ResponseRecorder {
					w := httptest.NewRecorder()
					server.ServeHTTP(w, httptest.NewRequest("POST", "/graphql.json", nil))
					return w
				}
				server = reserve.Must(pacetest.New(pacetest.InFlight(1), pacetest.WithDialect(d),
					pacetest.WithHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
						if inside == nil {
							refuse(server)
							inside = ask()
						}
					}))))
				ask()
				require.Equal(t, cmp.Or(d.Status, http.StatusTooManyRequests), inside.Code)
				require.Empty(t, inside.Header().Get("Retry-After"))
				for _, time := range []string{"retryDelay", "retry_after", "currentlyAvailable"} {
					require.NotContains(t, inside.Body.String(), time)
				}
			})
		}
	}
}
