package pacetest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

// asks returns a number of the request's: what the call is charged, or what it settles at.
func asks(r *http.Request, name string) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return n
}

func get(server *pacetest.Server, url string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
	return w
}

// tokens is a server with a limit of tokens, of which a request says in its query what it is charged.
func tokens(rule pacetest.Rule, handle http.HandlerFunc) *pacetest.Server {
	return reserve.Must(pacetest.New(pacetest.Unlimited(),
		pacetest.WithLimit("tokens", rule, func(r *http.Request) int { return asks(r, "charged") }),
		pacetest.WithDialect(pacetest.Dialect{RetryAfter: "Retry-After-Ms", Remaining: "Left-*"}),
		pacetest.WithHandler(handle)))
}

// A call that has settled leaves what it would have left if it had cost that from its beginning.
func TestSettle(t *testing.T) {
	const s = time.Second
	type call struct {
		at               time.Duration
		charged, settles int
		left, wait       string // after it was charged; "": the server does not say
	}
	for name, c := range map[string]struct {
		rule  pacetest.Rule
		calls []call
	}{
		"bucket": {pacetest.Bucket(10, 100), []call{
			{0, 60, 30, "40", ""}, {0, 70, 70, "0", ""}, {0, 1, 0, "0", "100"},
			{s, 10, 60, "0", ""}, {2 * s, 1, 0, "0", "4100"}, {6 * s, 0, 0, "0", ""}, {7 * s, 10, 0, "0", ""},
			{20 * s, 1, -5, "99", ""}, {20 * s, 100, 0, "0", ""}}},
		"window": {pacetest.Window(100, 10*s), []call{
			{0, 60, 30, "40", ""}, {s, 70, 90, "0", ""}, {s, 1, 0, "0", "9000"},
			{10 * s, 10, 10, "0", ""}, {10 * s, 1, 0, "0", "1000"}, {11 * s, 90, 90, "0", ""}}},
		"fixed windows": {pacetest.FixedWindow(100, 10*s), []call{
			{0, 60, 30, "40", ""}, {s, 70, 90, "0", ""}, {s, 1, 0, "0", "9000"}, {10 * s, 100, 100, "0", ""}}},
		"in flight": {pacetest.InFlight(100), []call{{0, 60, 100, "40", ""}, {0, 100, 20, "0", ""}, {0, 100, 100, "0", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := tokens(c.rule, func(_ http.ResponseWriter, r *http.Request) {
					pacetest.Settle(r, "tokens", 1000)
					pacetest.Settle(r, "tokens", asks(r, "settles"))
				})
				begin := time.Now()
				for i, call := range c.calls {
					pass(call.at - time.Since(begin))
					w := get(server, fmt.Sprintf("/?charged=%d&settles=%d", call.charged, call.settles))
					require.Equal(t, call.left, w.Header().Get("Left-Tokens"), "call %d", i)
					require.Equal(t, call.wait, w.Header().Get("Retry-After-Ms"), "call %d", i)
				}
			})
		})
	}
}

// What settles too late for its window changes nothing.
func TestSettleAfterTheWindow(t *testing.T) {
	for name, rule := range map[string]pacetest.Rule{
		"window": pacetest.Window(100, time.Second), "fixed windows": pacetest.FixedWindow(100, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := tokens(rule, func(_ http.ResponseWriter, r *http.Request) {
					pass(time.Duration(asks(r, "takes")) * time.Millisecond)
					pacetest.Settle(r, "tokens", 90)
				})
				first := make(chan int, 1)
				go func() { first <- get(server, "/?charged=10&takes=2500").Code }()
				pass(2 * time.Second)
				get(server, "/?charged=10") // the window of the first one is over
				pass(700 * time.Millisecond)
				require.Equal(t, 200, <-first)
				require.Equal(t, 200, get(server, "/?charged=10").Code)
			})
		})
	}
}

func TestSettleOfAnotherRequest(t *testing.T) {
	var kept *http.Request
	server := tokens(pacetest.Bucket(1, 1), func(_ http.ResponseWriter, r *http.Request) {
		kept = r
		require.PanicsWithError(t, `pacetest: the limit of Settle is "words"; want the name of one of the Server's limits`,
			func() { pacetest.Settle(r, "words", 1) })
	})
	get(server, "/a")
	require.PanicsWithError(t, "pacetest: the request of Settle is /a; want one that is not answered yet",
		func() { pacetest.Settle(kept, "tokens", 1) })
	require.PanicsWithError(t, "pacetest: the request of Settle is /b; want one that a Server has let in",
		func() { pacetest.Settle(httptest.NewRequest("GET", "/b", nil), "tokens", 1) })
}
