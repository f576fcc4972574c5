package outbound

import (
	"net/http"
	"time"
)

// Hooks are functions for metrics; each may be nil. The request's goroutine calls them and waits for them, under no
// lock, several at the same time. A limit's name is that of its [Limit], or the server's for a learned limit; New's
// limiter, PerKey's and a host's have none.
//
// Label metrics by the kind of key, never by keys: there are too many.
type Hooks struct {
	// Waiting: an attempt begins to wait, for a limit's rate, a stop, a place in flight, or another call's probe. A
	// timer's goroutine calls it again within a second of a change. It gets the limit that lets the call go last.
	Waiting func(r *http.Request, w Waiting)
	// Waited: an attempt goes out after this wait for its permits, perhaps 0.
	Waited func(r *http.Request, waited time.Duration)
	// Refused: an attempt did not go out: its deadline, WithMaxWait, its context's end, or a limiter's error.
	Refused func(r *http.Request, err error)
	// Throttled: the server refused an attempt because of a limit, and wants no other before retryAfter is over. It is
	// called for each blamed limit; with an empty name if none is the transport's. It must not read the body.
	Throttled func(r *http.Response, limit string, retryAfter time.Duration)
	// RateChanged: the response to the request changed an adaptive limit's rate, in permits per second.
	RateChanged func(r *http.Request, limit string, from, to float64)
	// Settled: an attempt used so many permits of a limit, after an estimate.
	Settled func(r *http.Request, limit string, estimated, used int)
}

// A Waiting says what a call waits for. See [Hooks].
type Waiting struct {
	Limit string    // the limit's name, as hooks show it
	Until time.Time // about when the call goes; zero: not known
	Why   Why
}

// Why is why a call waits.
type Why string

const (
	Paced   Why = "paced"   // the limit's own rate
	Stopped Why = "stopped" // the server said until when
	Crowded Why = "crowded" // no place in flight is free: see WithMaxInFlight
	Probing Why = "probing" // another call finds the rate
)
