package outbound

import (
	"net/http"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A Transport is an [http.RoundTripper] that makes each request wait for its
// permits, and listens to what the server says about its limits. It comes from
// [New]; all methods may be called at the same time.
type Transport struct {
	base    http.RoundTripper
	scopes  []scope
	before  func(*http.Request) int
	after   func(*http.Response) int
	clock   clockwork.Clock // nil: the real one
	maxWait time.Duration

	maxRetryAfter time.Duration
	retries       int
	pauseRefused  bool
	adaptive      bool
	hooks         Hooks
	log           *waitLog

	gate  *reserve.Policy      // of gates
	gates *keyed.Limiters[any] // of keys whose limiter can't be paused
	lanes memory[*lane]        // of adaptive keys
	err   error                // an option makes no sense
}

// New returns a transport that sends requests with base (nil: [http.DefaultTransport]) when
// by has permits for them.
//
//	client := &http.Client{Transport: outbound.New(nil, limiter)}
//
// All requests share the limiter, and are stopped together when a server refuses one.
// For limits that hold per host, user or route, see [Per]. If by is nil and there is no
// Per, every [Host] has a limiter without a limit: it is stopped when the server says so,
// and with [Adaptive] gets a rate.
//
// A *[reserve.Limiter], or a key's of package keyed, is stopped by its PauseUntil: the
// times of those who queue move and keep their distances. In front of any other Reserver
// the transport stops requests by itself, and lets them reserve again afterwards.
//
// An option whose value makes no sense is reported, as a *[reserve.ValueError], by
// every RoundTrip.
func New(base http.RoundTripper, by reserve.Reserver, opts ...Option) *Transport {
	t := &Transport{base: base, maxWait: reserve.Forever, maxRetryAfter: 5 * time.Minute}
	if base == nil {
		t.base = http.DefaultTransport
	}
	if by != nil {
		t.scopes = append(t.scopes, func(*http.Request) (any, reserve.Reserver) { return whole{}, by })
	}
	for _, opt := range opts {
		opt(t)
	}
	t.gate = unlimited(t.clock)
	if len(t.scopes) == 0 {
		Per(Host, keyed.New(func(string) (*reserve.Policy, error) { return t.gate, nil }).For)(t)
	}
	t.gates = keyed.New(func(any) (*reserve.Policy, error) { return t.gate, nil })
	t.lanes.forget = (*lane).restore
	return t
}

// RoundTrip sends a request when it has its permits. If they would come too late (for its
// context's deadline, of which http.Client's Timeout is one, for [WithMaxWait], or
// for the limiter's own longest wait) it returns a *[reserve.WaitError] at once. If the context ends while it
// waits, the permits are for others, and the error is the context's cause. The request is
// not changed, and its body is always closed.
//
// A response that is an error, 429 too, is returned as a response.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.err != nil {
		closeBody(r)
		return nil, t.err
	}
	cost := 1
	if t.before != nil {
		cost = t.before(r)
	}
	if cost < 1 {
		return t.base.RoundTrip(r)
	}
	v, err := t.visit(r, cost)
	if err == nil {
		err = v.reserve()
	}
	if err != nil {
		closeBody(r)
		return nil, v.refused(err)
	}
	for send, attempt := r, 1; ; attempt++ {
		if err := v.wait(); err != nil {
			closeBody(send)
			return nil, v.refused(err)
		}
		response, err := v.send(send)
		if err != nil {
			return nil, err
		}
		ruling := t.heed(v, response, attempt)
		if !ruling.again {
			return response, nil
		}
		next, ok := rewind(r)
		if !ok {
			return response, nil
		}
		if v.reserveAgain(ruling.resume) != nil { // too late for another attempt: this is the answer
			closeBody(next)
			return response, nil
		}
		drain(response.Body)
		send = next
	}
}

// CloseIdleConnections closes those of the base transport. It is for
// [http.Client.CloseIdleConnections]; the Transport itself never calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// now reads the clock.
func (t *Transport) now() time.Time {
	if t.clock == nil {
		return time.Now()
	}
	return t.clock.Now()
}
