package inbound_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// clock stands still, so that the examples print the same each time. A program
// leaves it out.
var clock = reserve.WithClock(clockwork.NewFakeClock())

// Every request passes three limits; refused by one, it is charged by none.
func Example() {
	client := reserve.Must(inbound.XForwardedFor([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
	perClient := reserve.Must(window.Policy(2, time.Minute, clock))
	perEndpoint := reserve.Must(window.Policy(100, time.Minute, clock))
	everybody := reserve.Must(pace.Bursty(50, reserve.WithStored(50), clock))

	limits := reserve.Must(inbound.New([]inbound.Tier{
		inbound.PerKey("client-endpoint", inbound.Both(client, inbound.Endpoint), perClient),
		inbound.PerKey("endpoint", inbound.Endpoint, perEndpoint),
		inbound.Global("global", everybody),
	}))
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", limits.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "item", r.PathValue("id"))
	})))

	for id := range 3 {
		r := httptest.NewRequest("GET", fmt.Sprint("/items/", id), nil)
		r.RemoteAddr = "10.0.0.1:4711"
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Body)
		fmt.Printf("%d RateLimit: %s, Retry-After: %q\n%s", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"), body)
	}
	// Output:
	// 200 RateLimit: "client-endpoint";r=1;t=1, Retry-After: ""
	// item 0
	// 200 RateLimit: "client-endpoint";r=1;t=60, Retry-After: ""
	// item 1
	// 429 RateLimit: "client-endpoint";r=0;t=60, Retry-After: "60"
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"Try again in 60 s.","violated-policies":["client-endpoint"]}
}

// Other limits for some keys.
func ExamplePerKeyBy() {
	free := reserve.Must(window.Policy(1, time.Minute, clock))
	paying := reserve.Must(window.Policy(1000, time.Minute, clock))
	perUser := keyed.New(func(user string) (*reserve.Policy, error) {
		if user == "ann" {
			return paying, nil
		}
		return free, nil
	})
	user := func(r *http.Request) (string, error) {
		name, _, ok := r.BasicAuth()
		if !ok {
			return "", inbound.ErrSkip // nobody's quota
		}
		return name, nil
	}
	limits := reserve.Must(inbound.New([]inbound.Tier{inbound.PerKeyBy("user", user, perUser)}))
	h := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, name := range []string{"ann", "ann", "bob", "bob"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth(name, "secret")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(name, w.Code)
	}
	// Output:
	// ann 200
	// ann 200
	// bob 200
	// bob 429
}

// An answer of the program's own, and the wait that was the reason.
func ExampleWithRefusal() {
	limits := reserve.Must(inbound.New(
		[]inbound.Tier{inbound.Global("global", reserve.Must(window.Policy(1, time.Minute, clock)))},
		inbound.WithRefusal(func(w http.ResponseWriter, r *http.Request, f *inbound.Refusal) {
			var wait *reserve.WaitError
			if errors.As(f.Err, &wait) {
				fmt.Println(f.Err.Tier, "would have taken", wait.Wait)
			}
			http.Error(w, "please come back later", f.Status)
		})))
	h := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d, Retry-After: %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, Retry-After: ""
	// global would have taken 1m0s
	// 429, Retry-After: "60"
}

// Preflights of browsers pass, and refusals can be read by scripts of another origin. A CORS middleware
// around this one does both.
func ExampleWithSkip() {
	preflight := func(r *http.Request) bool {
		return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	}
	limits := reserve.Must(inbound.New(
		[]inbound.Tier{inbound.Global("global", reserve.Must(window.Policy(1, time.Minute, clock)))},
		inbound.WithSkip(preflight),
		inbound.WithRefusal(func(w http.ResponseWriter, r *http.Request, f *inbound.Refusal) {
			w.Header().Set("Access-Control-Allow-Origin", "https://example.com")
			w.Header().Set("Access-Control-Expose-Headers", "Retry-After, RateLimit, RateLimit-Policy")
			f.ServeHTTP(w, r)
		})))
	h := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, method := range []string{"OPTIONS", "GET", "OPTIONS", "GET"} {
		r := httptest.NewRequest(method, "/", nil)
		r.Header.Set("Origin", "https://example.com")
		if method == "OPTIONS" {
			r.Header.Set("Access-Control-Request-Method", "GET")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%s %d %q\n", method, w.Code, w.Header().Get("Access-Control-Allow-Origin"))
	}
	// Output:
	// OPTIONS 200 ""
	// GET 200 ""
	// OPTIONS 200 ""
	// GET 429 "https://example.com"
}

// A client has 3 wrong passwords in a quarter of an hour; right ones cost nothing.
func ExampleChargeAfter() {
	client := reserve.Must(inbound.RemoteAddr())
	limits := reserve.Must(inbound.New([]inbound.Tier{
		inbound.PerKey("failures", client, reserve.Must(window.Policy(3, 15*time.Minute, clock)),
			inbound.ChargeAfter(func(_ *http.Request, res inbound.Response) int {
				if res.Status == http.StatusUnauthorized {
					return 1
				}
				return 0
			})),
	}))
	h := limits.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "correct horse" {
			http.Error(w, "wrong password", http.StatusUnauthorized)
		}
	}))
	for _, password := range []string{"correct+horse", "123456", "password", "correct+horse", "qwerty", "correct+horse"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/login?password="+password, nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 401
	// 401
	// 200
	// 401
	// 429
}

// A request counts as one, and as the rows that it asks for.
func ExampleCost() {
	rows := func(r *http.Request) int {
		n, _ := strconv.Atoi(r.FormValue("limit"))
		return max(1, n)
	}
	limits := reserve.Must(inbound.New([]inbound.Tier{
		inbound.Global("requests", reserve.Must(window.Policy(10, time.Minute, clock))),
		inbound.Global("rows", reserve.Must(window.Policy(1000, time.Minute, clock)), inbound.Cost(rows)),
	}))
	h := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, limit := range []int{600, 500, 400, 2000} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprint("/items?limit=", limit), nil))
		fmt.Println(limit, w.Code)
	}
	// Output:
	// 600 200
	// 500 429
	// 400 200
	// 2000 413
}

// A request without an API key, or with an unknown one, is answered with 401.
func ExampleUnauthorizedError() {
	apiKey := func(r *http.Request) (string, error) {
		if key := r.Header.Get("X-Api-Key"); key != "" {
			return key, nil
		}
		return "", &inbound.UnauthorizedError{Challenge: "ApiKey"}
	}
	plans := map[string]*reserve.Policy{"k1": reserve.Must(window.Policy(100, time.Minute, clock))}
	perKey := keyed.New(func(key string) (*reserve.Policy, error) {
		if plan := plans[key]; plan != nil {
			return plan, nil
		}
		return nil, &inbound.UnauthorizedError{Challenge: "ApiKey"}
	})
	limits := reserve.Must(inbound.New([]inbound.Tier{inbound.PerKeyBy("key", apiKey, perKey)}))
	h := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, key := range []string{"", "k1", "k2"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %q %q\n", w.Code, w.Header().Get("WWW-Authenticate"), w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 401 "ApiKey" ""
	// 200 "" "\"key\";q=100;w=60"
	// 401 "ApiKey" ""
}
