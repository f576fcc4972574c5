package outbound

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
)

// A Limit is one of the limits that hold for a request: requests a minute, tokens a minute, the
// quota of a day. See [WithLimit].
type Limit struct {
	// Name says what the limit counts, for hooks and for what servers say of it: "requests",
	// "tokens", "input-tokens" and "output-tokens" are what OpenAI's and Anthropic's headers tell
	// apart. A header or refusal that names no limit, or names requests where no limit is called
	// so, is for the last limit whose name is empty, or else the last.
	Name string
	// Limiter holds for all requests. It, or Keyed, or InFlight must be set.
	Limiter reserve.Reserver
	// Keyed says whose limiter holds for a request: see [Keyed].
	Keyed Scope
	// InFlight, if it is not 0, makes the limit one of how many requests are out at a time, for each Key (nil: all
	// together). "5 long calls, any number of short ones" is InFlight: 5 and a Cost that is 0 for short ones. A request
	// has one place, whatever its Cost: see [WithMaxInFlight]. A refusal whose reason is Name stops no rate: only the
	// refused request waits. Limiter, Keyed and the fields below Cost must not be set then.
	InFlight int
	Key      func(*http.Request) string
	// Cost says what a request costs, in permits. A request that costs 0 or less is not limited by
	// this limit. Default: 1 for each.
	Cost func(*http.Request) int
	// Recost, if it is not nil, is asked for the cost once more when the request is the first in
	// its line: for an estimate that gets better while requests wait.
	Recost func(*http.Request) int
	// Exact says that the limiter counts as the server does, as a window does for a window. Then
	// headers that say that nothing is left do not stop it, only a refusal that says for how long
	// does. Default: such headers stop it, too.
	Exact bool
	// Penalty is for how long the server refuses everything after a refusal because of this limit: 30 s at Airtable's, 10
	// min at SEC EDGAR's. Nothing of the limit goes for so long after a refusal that does not say how long, and
	// [WithMaxRetryAfter] does not bound it. Default: 0.
	Penalty time.Duration
	// Used, if it is not nil, returns what finds out how many permits a request has used: see [Usage].
	// A refused request has used nothing.
	Used func(*http.Response) Usage
	// Lost, if it is not nil, says what a request has used that got no response; if known is false, or
	// Lost is nil, it is charged its cost.
	Lost func(*http.Request) (permits int, known bool)
}

// A Usage finds out what a request has used, from its response: it is given the body as the caller
// reads it, and asked when that ends, is closed or fails, or when the request's context ends. It is
// used by one goroutine at a time. If the Usage is nil or does not know, the estimate stays.
type Usage interface {
	// Write gets a piece of the body, which it must not keep. Its results are ignored.
	Write(piece []byte) (int, error)
	// Used returns the permits that were used.
	Used() (permits int, known bool)
}

// A Scope returns a request's key, which must be comparable, and the limiter of that key.
type Scope func(*http.Request) (key any, by reserve.Reserver)

// Keyed returns a scope made of a key function, such as [Host], and a function that returns the
// limiter of a key, such as the method For of keyed.Limiters. It returns nil, which [WithLimit] refuses, if one
// of them is nil.
func Keyed[K comparable](key func(*http.Request) K, limiter func(K) reserve.Reserver) Scope {
	if key == nil || limiter == nil {
		return nil
	}
	return func(r *http.Request) (any, reserve.Reserver) {
		k := key(r)
		return k, limiter(k)
	}
}

// sharedKey is the key of a limiter that holds for all requests.
type sharedKey struct{}

// scope returns the limit's scope; nil: it has none.
func (l *Limit) scope() Scope {
	if l.Keyed != nil || isnil.Value(l.Limiter) {
		return l.Keyed
	}
	return func(*http.Request) (any, reserve.Reserver) { return sharedKey{}, l.Limiter }
}

// limit is a Limit whose functions are set.
type limit struct {
	name     string
	scope    Scope
	cost     func(*http.Request) int
	after    func(*http.Response) int // nil: none
	again    func(*http.Request) int  // nil: the cost is as it was
	exact    bool
	penalty  time.Duration
	whole    bool // it holds for all calls to a host
	upstream bool // it is that of the upstream to which the call goes
	used     func(*http.Response) Usage
	lost     func(*http.Request) (permits int, known bool)
}

func one(*http.Request) int { return 1 }
