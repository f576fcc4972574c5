package outbound_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
)

// api answers every call.
var api = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"usage": 25}`)
})

func Example() {
	server := httptest.NewServer(api)
	defer server.Close()

	limiter := reserve.Must(pace.NewBursty(50)) // what the API's documentation says
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, limiter))}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
	// Output: 200 OK
}

// A limiter for each host, and one for all of them.
func ExamplePer() {
	server := httptest.NewServer(api)
	defer server.Close()

	everything := reserve.Must(pace.NewBursty(100))
	tenPerSecond := reserve.Must(pace.Bursty(10))
	hosts := keyed.New(func(host string) (*reserve.Policy, error) { return tenPerSecond, nil })
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, everything, outbound.PerKey(outbound.Host, hosts.For)))}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status, hosts.Len())
	// Output: 200 OK 1
}

// An API whose limit is not known, but which tells it in its headers.
func ExampleAdaptive() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Policy", `"default";q=100;w=60`)
	}))
	defer server.Close()

	limiter := reserve.Must(pace.NewBursty(math.Inf(1), pace.WithBurst(0)))
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, limiter, outbound.Adaptive(), outbound.WithRetries(3)))}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Printf("%.3f calls/s: 100 a minute, less 2 %%\n", limiter.Rate())
	// Output: 1.633 calls/s: 100 a minute, less 2 %
}

// Tokens: 100 are estimated, and the number used is in the response.
func ExampleLimit() {
	server := httptest.NewServer(api)
	defer server.Close()

	client := &http.Client{Transport: reserve.Must(outbound.New(nil, nil, outbound.WithLimit(outbound.Limit{
		Limiter: reserve.Must(pace.NewBursty(1000)),
		Cost:    func(*http.Request) int { return 100 },
		Used:    func(*http.Response) outbound.Usage { return new(inBody) },
	})))}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	fmt.Println(string(body))
	// Output: {"usage": 25}
}

// inBody is a usage that the response's body says. It gets the pieces of the body as the caller reads them.
type inBody struct{ bytes.Buffer }

func (b *inBody) Used() (int, bool) {
	var answer struct{ Usage int }
	err := json.Unmarshal(b.Bytes(), &answer)
	return answer.Usage, err == nil
}

// Requests and tokens a minute, in one transport: 160 tokens are estimated for a request, and what
// were used is in a header of the response.
func ExampleWithLimit() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tokens-Used", "60")
	}))
	defer server.Close()

	requests := reserve.Must(pace.NewBursty(reserve.Per(600, time.Minute)))
	tokens := reserve.Must(pace.NewBursty(reserve.Per(48000, time.Minute)))
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, requests, outbound.WithLimit(outbound.Limit{
		Name:    "tokens",
		Limiter: tokens,
		Cost:    func(*http.Request) int { return 160 },
		Used:    func(r *http.Response) outbound.Usage { return inHeader(r.Header.Get("X-Tokens-Used")) },
	}), outbound.WithHooks(outbound.Hooks{
		Settled: func(_ *http.Request, limit string, estimated, used int) { fmt.Println(limit, estimated, used) },
	})))}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	response.Body.Close()
	// Output: tokens 160 60
}

// inHeader is a usage that a header says.
type inHeader string

func (inHeader) Write(piece []byte) (int, error) { return len(piece), nil }

func (h inHeader) Used() (int, bool) {
	n, err := strconv.Atoi(string(h))
	return n, err == nil
}

// A call that would come too late fails at once, and says why.
func ExampleTransport_RoundTrip() {
	limiter := reserve.Must(pace.NewBursty(1))
	limiter.Reserve(context.Background(), 3600) // an hour's worth has been promised already
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, limiter)), Timeout: time.Minute}
	_, err := client.Get("http://api.example.com")
	var wait *reserve.WaitError
	fmt.Println(errors.As(err, &wait), errors.Is(err, context.DeadlineExceeded), wait.Wait.Round(time.Minute))
	// Output: true true 1h0m0s
}

// What is worth knowing in production.
func ExampleWithHooks() {
	first := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if first {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		first = false
	}))
	defer server.Close()

	hooks := outbound.Hooks{
		Throttled: func(r *http.Response, _ string, retryAfter time.Duration) { fmt.Println(r.Status, retryAfter) },
	}
	limiter := reserve.Must(pace.NewBursty(1000))
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, limiter,
		outbound.WithRetries(1), outbound.WithHooks(hooks), outbound.WithLogger(slog.Default(), time.Second)))}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
	// Output:
	// 429 Too Many Requests 10ms
	// 200 OK
}
