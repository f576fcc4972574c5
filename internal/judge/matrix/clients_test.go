package matrix

import (
	"math"
	"net/http"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// A Client is a way to call.
type Client struct {
	Name string
	New  func(base http.RoundTripper, k Kind, s Setting) *http.Client
	Fits func(k Kind) bool // nil: all kinds

	Adaptive bool
}

// Clients are those of the table.
var Clients = []Client{
	{Name: "rate known", New: paced(1)},
	{Name: "60 % too high", New: paced(1.6, outbound.Adaptive()), Adaptive: true},
	{Name: "unknown", New: paced(math.Inf(1), outbound.Adaptive()), Adaptive: true},
	{Name: "known, PauseRefused", New: paced(1, outbound.PauseRefused())},
	{Name: "60 % too high, PauseRefused", New: paced(1.6, outbound.Adaptive(), outbound.PauseRefused()), Adaptive: true},
	{Name: "WithMaxInFlight", New: inFlight, Fits: func(k Kind) bool { return k.Places != nil }},
	{Name: "unknown, PauseRefused", New: paced(math.Inf(1), outbound.Adaptive(), outbound.PauseRefused()), Adaptive: true},
}

// paced is an ordinary client with a pace transport, whose limiters save up nothing.
func paced(times float64, opts ...outbound.Option) func(http.RoundTripper, Kind, Setting) *http.Client {
	return func(base http.RoundTripper, k Kind, s Setting) *http.Client {
		opts := append([]outbound.Option{outbound.WithRetries(100), outbound.WithMaxRetryAfter(5 * time.Second)}, opts...)
		limiter := evenly(times * s.Rate)
		if k.Tokens {
			requests, tokens := tokenRates(s)
			limiter = evenly(times * requests)
			opts = append(opts, outbound.WithLimit(outbound.Limit{Name: "tokens", Limiter: evenly(times * tokens), Cost: tokensOf}))
		}
		return &http.Client{Transport: reserve.Must(outbound.New(base, limiter, opts...))}
	}
}

// inFlight knows how many calls the server has room for at a time, and nothing of a rate.
func inFlight(base http.RoundTripper, k Kind, s Setting) *http.Client {
	return paced(math.Inf(1), outbound.WithMaxInFlight(k.Places(s)))(base, k, s)
}

func evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}
