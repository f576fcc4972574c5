package outbound

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/internal/recent"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A Transport paces requests and obeys what the server says about its limits. All methods may be called at the same
// time.
//
// Requests wait for their permits, first come first served. If a waiting request gives up, those behind it move up.
//
// # What stops requests
//
// A refusal with a time (429, 503 or 529 with Retry-After, GitHub's 403) stops all requests of its key until then, and
// so does a response that says that nothing is left until a time. Queued requests keep their distances. If the time is
// missing or past, "nothing is left" stops the key for a second, longer each time. A refusal that says neither makes
// only its own request wait as long: at most six retries, of 1 + 2 + 4 + 8 + 16 + 32 s, outlast a limit a minute.
//
// A stop lies on what the refusal names: a limit, an account, a host; else on the key. Nothing but its end lifts it. A
// refusal of all calls (Discord's with X-RateLimit-Global or, with learned keys, one that says that the named limit has
// room) stops the limiter given to [New] or a [Limit] without keys, otherwise all calls of the credential to the host.
//
// In a window that headers tell, and at an upstream without a limiter, one request goes first after a refusal. Each
// accepted request lets two more go: at most as many as were out and not refused, and never more than the server says
// are left. This does not hold if at most 4 % of the requests are refused without a time.
//
// A refusal may have another status: GraphQL's 200 with the code RATE_LIMITED, AWS's 400, Slack's {"ok":false}; a
// [Sign] tells of others. If it is not about the rate (Stripe's lock_timeout, Okta's limit on calls at a time), only
// its call waits. HTTP/2's ENHANCE_YOUR_CALM is a refusal without a time; the server may have begun, so it is repeated
// as after a 503.
//
// # A worked example
//
// A server allows 50 requests a second with a burst of 10, and answers others with 429 and Retry-After: 1. 64
// goroutines make 500 calls, which takes 9.8 s at best.
//
//   - A limiter of 50/s: 10.0 s, none refused.
//   - A limiter of 80/s and [Adaptive]: 11.1 s. After some 25 calls one is refused. All stop for 1 s and go on at 48/s.
//   - No rate, and a server that sends RateLimit-Policy: 10.2 s, none refused, at the server's rate less 2 %.
type Transport struct {
	settings
	base   http.RoundTripper
	watch  clockwork.Clock // never nil
	reader *reply.Reader

	lines       lines
	unlimited   *reserve.Policy
	controllers recent.Map[any, *controller]
	states      limitStates
	waiting     atomic.Int64 // calls in their own backoff
	learned     *learned
	whole       bool // one of the limits holds for all calls
}

// New returns a transport that sends requests with base (nil: [http.DefaultTransport]) when by has permits for them.
// All requests share the limiter, and a refusal stops all. For limits per host, user or route, see [PerKey].
//
// If by is nil and there is no PerKey or [WithLimit], keys are learned: an unlimited limiter for every [Host] and
// [Credential] (Basic, Bearer, Token or Bot; not a signature), and for each limit that the host names.
//
// The rate of a limiter at +Inf, or of none, is found once the server refuses a request, as [Adaptive] finds it,
// without changing the limiter; until then requests go as they come, or at a rate that the server states. If a request
// is accepted less than two seconds after the refusal, the rate starts at 16 requests/s and doubles every 0.3 s until
// the next refusal. Otherwise it starts at what was accepted over that whole time, but at least 4 requests/s: 600
// requests accepted at once in a minute are 10/s. A window that headers tell is spent as they say.
//
// # What the documentation says
//
//	"N in T", "N a minute"                       window.New(N, T)
//	"a bucket of b, refilled at r a second"      pace.NewTokenBucket(r, b)
//	"N a day, until midnight in California"      calendar.New(N, calendar.Daily(zone, 0))
//	"N at a time"                                WithMaxInFlight(N)
//	"after a refusal nothing for T"              Limit{Limiter: …, Penalty: T}
//
// The server counts a call between its sending and its answer. So a window counts it until T after its response or end,
// and a calendar's period counts calls that are out when it begins: the server never sees more than N calls in T. At 25
// in 1 s and 140 ms for a call, calls take 1.14 times as long as at best. Evenly spaced calls at exactly the rate are
// not safe at a server that counts in windows.
//
// # The limiter
//
// A *[reserve.Limiter], or a key's of package keyed, is stopped by its PauseUntil. Requests of other Reservers are
// stopped by the transport and reserve again afterwards. Other parts of the program may use the limiter too: only the
// first waiting request of each set of keys is in its queue.
//
// The limiter's rate is kept. How many requests may go at once is a guess about how the server counts: if requests
// within the rate are refused, what was accepted of them goes at once from then on, and further ones are spaced at the
// rate. Of window.New(50, time.Second), at a server that is a bucket of 10, some 8 go at once and 50 a second. A little
// more is tried after 8 s or five stops, then twice as much each time; a refused trial is undone, and the next comes
// after four times the time. Where requests arrive less evenly than they were sent, and are refused for that, the
// distances grow by what the answers' times differ. This does not hold for limits of more than ten minutes, nor for an
// Exact [Limit].
//
// New returns a *[reserve.ValueError] if base or by is a nil pointer, or an option is nil or has a bad value.
func New(base http.RoundTripper, by reserve.Reserver, opts ...Option) (*Transport, error) {
	t := &Transport{base: base, settings: settings{
		maxWait: reserve.Forever, expires: expiry, rules: rules{maxRetryAfter: 5 * time.Minute},
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
	if err := join(&t.settings, opts); err != nil {
		return nil, err
	}
	if t.watch = t.clock; t.clock == nil {
		t.watch = clockwork.NewRealClock()
	}
	t.unlimited = queue.Unlimited(t.clock)
	if err := t.checkRetries(); err != nil {
		return nil, err
	}
	t.reader = reply.NewReader(t.dialects)
	t.divide()
	t.learned = newLearned(t.unlimited, len(t.limits) == 0 || t.limits[0].part != nil)
	t.whole = slices.ContainsFunc(t.limits, func(l limit) bool { return l.whole })
	t.controllers.Forget = (*controller).restore
	t.lines.of, t.states.of = map[lineKey]*line{}, map[keys]*limitState{}
	return t, nil
}

func (t *Transport) now() time.Time { return t.watch.Now() }

// NewUpstreams returns a transport that uses several keys or deployments as one: each request goes to the upstream that
// has permits first. Parameter base is as in [New].
//
// Only one upstream is charged, chosen at the last moment; pool.WithKey in a request's context prefers the upstream
// that served that key last. A refusal stops its upstream. If a request has no body, or has GetBody, it then goes to
// the next at once, to each at most once; the last refusal is the answer. If all are stopped, it waits for the
// earliest, or gets a *[reserve.WaitError] with that time.
//
// An upstream that fails (a broken connection, 5xx, 401, 403 or 404) rests for 1 s, doubling to 60 s; then one call
// probes it. A failure counts if another upstream served the same request, or if it is the second in a row. A call
// whose body can be sent again goes on to the next upstream: with any method if there was no connection, and after 401,
// 403 and 404; otherwise only with an idempotent method (RFC 9110), an Idempotency-Key, or [RetryNonIdempotent].
//
// A redirect within an upstream is rewritten to the caller's URL, so the client follows it through the transport. Other
// redirects are followed unpaced and without an upstream's header. Set-Cookie is removed: a client's jar would send it
// to all upstreams. Response.Request is the caller's.
//
// Limits of [WithLimit] and [PerKey] hold for all upstreams together. [Adaptive] does not change the upstreams' own.
//
// NewUpstreams returns a *[reserve.ValueError] if there is no upstream, or a Base without a scheme or a host, and the
// errors of New.
func NewUpstreams(base http.RoundTripper, members []Upstream, opts ...Option) (*Transport, error) {
	if len(members) == 0 {
		return nil, valueError("the number of upstreams", 0, "at least 1")
	}
	u := &upstreams{}
	for i, m := range members {
		if m.Base == nil || m.Base.Scheme == "" || m.Base.Host == "" {
			return nil, valueError(fmt.Sprintf("Base of upstream %d", i), m.Base, "a URL with a scheme and a host")
		}
		own, base := &upstream{Upstream: m, limited: m.By != nil, number: i}, *m.Base
		own.Base, own.Header = &base, m.Header.Clone()
		if m.By != nil && isnil.Value(m.By) {
			return nil, valueError(fmt.Sprintf("By of upstream %d", i), nil, "a Reserver, or nil without a type")
		}
		u.all = append(u.all, own)
	}
	return New(base, nil, append([]Option{func(s *settings) error {
		s.upstreams = u
		s.limits = append(s.limits, limit{cost: one, upstream: true})
		return nil
	}}, append(opts[:len(opts):len(opts)], func(s *settings) error { // when the clock is known
		policy := queue.Unlimited(s.clock)
		for _, own := range u.all {
			own.pause = policy.Limiter()
			if own.By == nil {
				own.By = policy.Limiter()
			}
		}
		return nil
	})...)...)
}
