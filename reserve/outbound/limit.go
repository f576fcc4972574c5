package outbound

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
)

// A Limit is one limit on requests, such as tokens a minute. See [WithLimit].
type Limit struct {
	// Name says what the limit counts, for hooks and to match the server's words: OpenAI and Anthropic say "requests",
	// "tokens", "input-tokens" and "output-tokens". Headers and refusals without a name, or for requests if no limit
	// has that name, concern the last limit without a name, or else the last.
	Name string
	// Limiter holds for all requests. Set exactly one of Limiter, Keyed and InFlight.
	Limiter reserve.Reserver
	// Keyed returns a request's limiter: see [Keyed].
	Keyed Scope
	// InFlight bounds the requests that are out, for each Key (nil: all together); 0: no bound. See [WithMaxInFlight].
	// Each has one place, whatever its Cost: "5 long calls, any number of short ones" is InFlight: 5 and a Cost of 0
	// for short ones. A refusal whose reason is Name makes only the refused request wait. The fields below Cost must
	// not be set.
	InFlight int
	Key      func(*http.Request) string
	// Cost returns a request's cost, in permits; 0 or less: the limit does not hold for it. Default: 1. What responses
	// say is left counts permits only under the limit's Name, and otherwise requests: see [Dialect].
	Cost func(*http.Request) int
	// Recost, if not nil, returns the cost again when the request is first in its line, for an estimate that improves.
	// Without a rate, such a limit is not Adaptive by itself.
	Recost func(*http.Request) int
	// Exact: the limiter counts as the server does, from the sending of a request. Only refusals with a time stop it, not
	// headers that tell that nothing is left. How many may go at once stays as told, unless Recost is set: an estimate is
	// not exact.
	Exact bool
	// Penalty is the limit's stop after a refusal without a time, whatever [WithMaxRetryAfter] says: 30 s at Airtable,
	// 10 min at SEC EDGAR.
	Penalty time.Duration
	// Adaptive finds this limit's rate as option [Adaptive] does, below its limiter's.
	Adaptive bool
	// Used, if not nil, finds the permits that a request used: see [Usage]. A refused request used none. An estimate
	// above a token bucket's capacity costs nothing here: such a request goes when the bucket is full, and pays the rest
	// when it has ended, if it used that. At 1000/s and a capacity of 250, requests that cost 500 and use 250 go at 4/s.
	Used func(*http.Response) Usage
	// Lost, if not nil, returns what a request without a response used. If not known, it is charged its cost.
	Lost func(*http.Request) (permits int, known bool)
}

// A Usage finds what a request used, from the response's body as the caller reads it. One goroutine uses it at a time.
// If it is nil or does not know, the estimate stays.
type Usage interface {
	// Write gets a piece of the body, which it must not keep. Its results are ignored.
	Write(piece []byte) (int, error)
	// Used returns the used permits. It is called when the body ends, is closed or fails, or the request's context
	// ends.
	Used() (permits int, known bool)
}

// A Scope returns a request's key, which must be comparable, and the key's limiter.
type Scope func(*http.Request) (key any, by reserve.Reserver)

// Keyed makes a scope of a key function, such as [Host], and a function that returns a key's limiter, such as
// keyed.Limiters.For. It returns nil, which [WithLimit] refuses, if either is nil.
func Keyed[K comparable](key func(*http.Request) K, limiter func(K) reserve.Reserver) Scope {
	if key == nil || limiter == nil {
		return nil
	}
	return func(r *http.Request) (any, reserve.Reserver) {
		k := key(r)
		return k, limiter(k)
	}
}

type sharedKey struct{}

func (l *Limit) scope() Scope {
	switch {
	case l.Key != nil:
		return func(r *http.Request) (any, reserve.Reserver) { return l.Key(r), nil }
	case l.Keyed != nil || l.InFlight == 0 && isnil.Value(l.Limiter):
		return l.Keyed
	}
	return func(*http.Request) (any, reserve.Reserver) { return sharedKey{}, l.Limiter }
}

type limit struct {
	name     string
	scope    Scope
	cost     func(*http.Request) int
	again    func(*http.Request) int // nil: the cost stays
	exact    bool
	penalty  time.Duration
	adaptive bool  // whatever the transport is
	whole    bool  // for all calls to a host
	upstream bool  // of the call's upstream
	part     *part // of the requests, for which it holds; nil: all
	places   int   // of so many calls in flight for each key; 0: its scope has a limiter
	used     func(*http.Response) Usage
	lost     func(*http.Request) (permits int, known bool)
}

func one(*http.Request) int { return 1 }

// valueError makes the error for a bad value.
var valueError = invalid.In("outbound")
