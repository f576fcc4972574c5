package outbound

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A Transport paces requests and obeys what the server says about its limits. All methods may be called at the same
// time.
type Transport struct {
	settings
	base  http.RoundTripper
	watch clockwork.Clock // never nil

	lines       lines
	unlimited   *reserve.Policy
	controllers memory[*controller]
	states      limitStates
	waiting     atomic.Int64 // calls in their own backoff
	learned     *learned
	whole       bool // one of the limits holds for all calls
}

// New returns a transport that sends requests with base (nil: [http.DefaultTransport]) when by has permits for them.
// All requests share the limiter, and a refusal stops all. For limits per host, user or route, see [PerKey].
//
// If by is nil and there is no PerKey or [WithLimit], keys are learned: an unlimited limiter for every [Host] and
// [Credential] (Basic, Bearer, Token or Bot; not a signature), and for each limit that the host names. They stop when
// the server says so, and get a rate with [Adaptive].
//
// A *[reserve.Limiter], or a key's of package keyed, is stopped by its PauseUntil: queued requests keep their
// distances. Requests of other Reservers are stopped by the transport and reserve again afterwards.
//
// Other parts of the program may use the limiter too. Only the first waiting request of each set of keys is in its
// queue.
//
// New returns a *[reserve.ValueError] if base or by is a nil pointer, or an option is nil or has a bad value.
func New(base http.RoundTripper, by reserve.Reserver, opts ...Option) (*Transport, error) {
	t := &Transport{base: base, settings: settings{
		maxWait: reserve.Forever, rules: rules{maxRetryAfter: 5 * time.Minute}, dialects: reply.Dialects,
	}}
	if base == nil {
		t.base = http.DefaultTransport
	}
	if isnil.Value(t.base) {
		return nil, valueError("base", nil, "a RoundTripper, or nil without a type")
	}
	if by != nil {
		if isnil.Value(by) {
			return nil, valueError("the limiter", nil, "a Reserver, or nil without a type")
		}
		t.limits = append(t.limits, limit{scope: (&Limit{Limiter: by}).scope(), cost: one, whole: true})
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, valueError("an option", nil, "an option")
		}
		if err := opt(&t.settings); err != nil {
			return nil, err
		}
	}
	if t.watch = t.clock; t.clock == nil {
		t.watch = clockwork.NewRealClock()
	}
	t.unlimited = queue.Unlimited(t.clock)
	if err := t.checkRetries(); err != nil {
		return nil, err
	}
	t.learned = newLearned(t.unlimited, len(t.limits) == 0)
	for i := range t.limits {
		t.whole = t.whole || t.limits[i].whole
	}
	t.controllers.forget = (*controller).restore
	return t, nil
}

// RoundTrip sends a request when it has its permits. If they would come too late for its context's deadline
// (http.Client's Timeout sets it), [WithMaxWait], or the limiter's own longest wait, it takes nothing and returns a
// *[reserve.WaitError] at once. If the context ends while it waits, it returns the context's cause. It does not change
// the request and always closes its body. An error response, such as 429, is returned as a response.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.upstreams != nil && elsewhere(r) {
		return t.passOn(r)
	}
	c := t.newCall(r)
	defer c.release()
	defer c.end()
	if err := c.prepare(); err != nil {
		return nil, c.refuse(err)
	}
	if c.free() {
		c.unsent = false
		return t.base.RoundTrip(r)
	}
	t.budget.request()
	for {
		if err := c.admit(); err != nil {
			return nil, c.refuse(err)
		}
		v, err := c.exchange()
		switch {
		case c.another(&v, err), v.again && c.again(v.resume):
		case err != nil:
			return nil, err
		default:
			return c.deliver(), nil
		}
	}
}

// CloseIdleConnections closes the idle connections of the base transport, as [http.Client.CloseIdleConnections] asks.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) now() time.Time { return t.watch.Now() }
