package outbound

import (
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// An Option changes one setting of [New], which returns the option's error.
type Option func(*settings) error

type settings struct {
	limits  []limit
	clock   clockwork.Clock // nil: the real one
	maxWait time.Duration

	rules
	budget   *budget // nil: none
	adaptive bool
	dialects []reply.Dialect
	hooks    Hooks
	log      *waitLog // nil: none
	inFlight []limit  // none: any number
	expires  func(r *http.Request, clock clockwork.Clock) time.Time

	classOf func(*http.Request) (class, tenant string)
	classes []fair.Class // nil: first come, first served

	upstreams *upstreams // nil: requests go where they say
	parts     []*part    // of the requests: see Only

	ownLongest bool // maxRetryAfter is the caller's
}

func set(change func(*settings)) Option { return checked(true, "", nil, "", change) }

// checked is an option whose value must be as ok says.
func checked(ok bool, name string, value any, want string, change func(*settings)) Option {
	return func(s *settings) error {
		if !ok {
			return valueError(name, value, want)
		}
		change(s)
		return nil
	}
}

// PerKey paces requests by key: a request needs permits of its key's limiter. With several PerKey options, or a limiter
// given to New, it gets the permits of all or none; refusals and headers affect only its key of the last PerKey.
//
//	hosts := keyed.New(func(host string) (*reserve.Policy, error) { return tenPerSecond, nil })
//	outbound.New(nil, everything, outbound.PerKey(outbound.Host, hosts.For))
//
// Calls that share a limit on the server have the same key. If the key is too wide, a refusal stops unconcerned calls:
// GitHub's core calls and searches behind one limiter take seven times as long as they must. If it is too narrow, calls
// miss each other's refusals.
//
//	what shares a limit                  write
//	all calls                            New(nil, limiter)
//	the calls to one host                PerKey(Host, hosts.For)
//	the calls of one user of a host      PerKey(Credential, users.For)
//	the calls to one endpoint            PerKey(func(r *http.Request) string { return r.URL.Path }, routes.For)
//	requests a minute, tokens a minute   New(nil, requests, WithLimit(Limit{Name: "tokens", …}))
//	what the server says                 New(nil, nil)
//
// # Learned keys
//
// Some servers name the limit in responses: GitHub in X-RateLimit-Resource, Discord in X-RateLimit-Bucket, others in
// RateLimit-Policy. Where none is named, two paths have two limits if their responses differ in the limit's size, or
// for some seconds in the end of its window, as X's do. With New(nil, nil) the transport learns these names for each
// credential; beside limits of your own only after the server has named two to the calls of one key. A call has the
// limit that its method and path named last. A new path has the limit of its longest known prefix, if two paths there
// named only it; otherwise the host's. A name that equals the Name of a [Limit] means that limit.
func PerKey[K comparable](key func(*http.Request) K, limiter func(K) reserve.Reserver) Option {
	scope := Keyed(key, limiter)
	return checked(scope != nil, "PerKey", nil, "a key function and a limiter function", func(s *settings) {
		s.limits = append(s.limits, limit{scope: scope, cost: one})
	})
}

// WithMaxInFlight lets at most n requests be out at a time; with a key function, such as [Host], n for each key.
// Default: no bound. A request takes its place together with its permits, so a stalled server gets no burst, and holds
// it until the response's body is closed, or there is no response. Waits for a place can't be predicted, so errors of
// [WithMaxWait] and deadlines come when these are over.
//
// With WithMaxInFlight(8) at a server that works on 8 requests at a time, 160 ms each, 64 callers get 50 answers a
// second and no 503.
func WithMaxInFlight(n int, key ...func(*http.Request) string) Option {
	return func(s *settings) error {
		if n < 1 || len(key) > 1 {
			return valueError("WithMaxInFlight", n, "at least 1, and one key function or none")
		}
		if len(key) > 0 && key[0] == nil {
			return valueError("the key of WithMaxInFlight", nil, "a function")
		}
		return WithLimit(Limit{InFlight: n, Key: append(key, nil)[0]})(s)
	}
}

// WithRetryBudget bounds all retries to ten plus a share of all requests; beyond that, RoundTrip returns the refusal.
// With 0.1, a server that refuses everything sees 1110 attempts of 1000 requests; WithRetries(3) alone makes 4000.
// Default: no budget.
func WithRetryBudget(share float64) Option {
	ok := share >= 0 && share <= 1
	return checked(ok, "WithRetryBudget", share, "a share of the requests: 0.1 is 10 %", func(s *settings) {
		s.budget = newBudget(share)
	})
}

// WithDialect adds a dialect, tried before the known ones and those of earlier WithDialect options.
func WithDialect(d Dialect) Option {
	ok := !reflect.ValueOf(d).IsZero()
	return checked(ok, "WithDialect", d, "a Dialect that reads something", func(s *settings) {
		s.dialects = append([]reply.Dialect{d.expanded()}, s.dialects...)
	})
}

// WithMaxWait sets the longest wait of a request, beside its deadline and the limiter's own. If it would be longer,
// RoundTrip returns a *[reserve.WaitError] at once; a later stop by the server may make it longer. Negative counts as
// 0. Default: [reserve.Forever].
func WithMaxWait(d time.Duration) Option {
	return set(func(s *settings) { s.maxWait = max(0, d) })
}

// WithMaxRetryAfter sets the longest stop of a key that a server may request. If it requests more, RoundTrip returns
// the refusal at once and, without [PauseRefused], the key stops for d. Negative counts as 0. Default: 5 minutes.
func WithMaxRetryAfter(d time.Duration) Option {
	return set(func(s *settings) { s.maxRetryAfter, s.ownLongest = max(0, d), true })
}

// WithRetries sends a refused request again, up to n times and before later requests, if it has no body or has GetBody;
// after a 503 without a time see [RetryNonIdempotent]. Each attempt pays its permits. Other responses and errors are
// for the caller. A request that gives up before its retry returns that error, not the refusal. Default: 0.
func WithRetries(n int) Option {
	return checked(n >= 0, "WithRetries", n, "0 or more", func(s *settings) { s.retries = n })
}

// RetryNonIdempotent lets [WithRetries] repeat any request after a 503 without a time, and [NewUpstreams] also after
// 5xx and a broken connection: an order may be placed twice. Default: only idempotent methods, such as GET and PUT, and
// requests with an Idempotency-Key.
func RetryNonIdempotent() Option { return set(func(s *settings) { s.repeatAny = true }) }

// PauseRefused makes a refusal stop only the refused request; without [WithRetries] it stops nothing. Default: the
// whole key stops, as GitHub and Discord require. It suits lenient servers: a stop of 1 s where permits come back after
// 20 ms costs 50 requests.
func PauseRefused() Option { return set(func(s *settings) { s.pauseRefused = true }) }

// Adaptive finds the rate that the server accepts, in permits, for each limit whose limiter has Rate and SetRate, as
// *[reserve.Limiter] does. It never exceeds the limiter's own rate. A window or calendar of at most ten minutes keeps
// its own: below it, calls are spaced evenly as well.
//
// A refusal cuts the rate by a tenth, once for all refusals of one event; the first at an unproven rate cuts it to 0.6.
// A period without a refusal raises it by a tenth, and faster after three. A period is 10 s and 25 requests, and at
// least 25 s for a stop of a second; after two longer stops in a row it is 25 times their length. A rate that lasted is
// back within the length of a single stop, at most 25 s. In the steady state fewer than 3 % of the requests are refused
// at 1/s, 1.5 % at 3/s, 0.2 % at 50/s, and stops take 4 % of the time. The rate stays below twice the rate of answers,
// and is at least a request in 2 minutes (in 2 seconds while nothing is accepted).
//
// A rate that the server states is used at once, less 2 %. What is left of a window is spent at once, or spread over
// its rest while other programs use it too. If that is less than a request costs, the limit stops until the window's
// end.
//
// Programs may share a limit: 3, 10, 30 and 100 of them use all of a bucket of 100/s in about equal parts, and 0.3,
// 0.9, 2.1 and 6.9 % of their requests are refused. One that comes late has its share after a minute, and up to four of
// long windows.
//
// A share of the refusals may come at any rate: a backend is dead, a gateway drops requests, or programs that do not
// yield use the same limit. It is found when requests have become rarer by a third, and as large a share of them is
// refused. Such refusals then slow nothing down, and a Retry-After of at most ten seconds stops only its own request.
// No request is sent to find out, but for 2.5 s of each 53 half as many go; of each 13 until 503s are found to come so.
// That shows when the share is gone. Programs with one limit do it at the same time, so their clocks should agree to
// half a second. Below three requests a second only 503s are taken for such a share.
//
//   - 503s by dead backends: if a twentieth of the requests meet one, .9 of the rate is left, of a third .5 to .8.
//   - 429s without a time by chance: a job takes 1.1 to 1.9 times as long at 3 %, 1.2 to 2.2 times at 10 %.
//   - 429s with a time by chance are not found below an eighth: at 3 % the rate falls to 1.7/s. Use a fixed rate, or
//     [PauseRefused].
//   - Beside two programs with exponential backoff, a fixed rate or AWS's adaptive mode, at a bucket of 20/s, .4 to 2
//     times an equal share is left. Where windows of 10 s tell their end, .05 beside backoff, which takes all at once.
//   - If the limit itself answers 503, ten programs at 100/s have 1.2 % refused, thirty at 20/s three quarters.
//
// A limit that is not adaptive keeps its rate. If it is refused all the same, its requests go 4 % slower by the same
// law, 8 % at most; and what goes at once is found: see [New].
//
// Limits without a rate are found also without the option, after a refusal: see New. With it, the first request goes
// alone. If its response states no rate, the rate starts at 16 requests/s and doubles every 0.3 s until the first
// refusal. Give requests a deadline, or [WithMaxWait], if a server may never answer.
//
// A limiter belongs to one adaptive transport. Setting its rate elsewhere sets a new ceiling and begins anew.
func Adaptive() Option { return set(func(s *settings) { s.adaptive = true }) }

// WithExpiry sets the function that says until when a request must be sent; zero: whenever. A request that can't be
// sent in time gets an *[ExpiredError] at once. Default: AWS's X-Amz-Date and 5 minutes, the same headers of Azure,
// Alibaba, Huawei and Tencent Cloud (5 or 15 minutes) and of exchanges (5 s or 30 s), and signed addresses. A signature
// that has ended when the request comes counts from then.
//
// Better sign below this transport, in its base: then each attempt has a fresh signature.
func WithExpiry(f func(r *http.Request) time.Time) Option {
	return checked(f != nil, "WithExpiry", nil, "a function", func(s *settings) {
		s.expires = func(r *http.Request, _ clockwork.Clock) time.Time { return f(r) }
	})
}

// WithHooks sets the [Hooks]. Default: none.
func WithHooks(h Hooks) Option { return set(func(s *settings) { s.hooks = h }) }

// WithLogger logs, at level Info, requests that wait longer than a time (a second is a good value): when it has passed,
// with the limit's name, the reason and about until when, and when the wait is over. It also logs a told limit that
// does not fit the server: see [LimitState.Misfit]. It writes at most one line of each kind a second, with the number
// left out. Default: no log.
func WithLogger(l *slog.Logger, longerThan time.Duration) Option {
	return checked(l != nil, "WithLogger", nil, "a logger", func(s *settings) {
		s.log = &waitLog{logger: l, longerThan: longerThan}
	})
}

// WithClock replaces the clock for reading headers and finding rates, in tests. Limiters have their own. Default: the
// real one.
func WithClock(c clockwork.Clock) Option {
	return checked(!isnil.Value(c), "WithClock", nil, "a clock", func(s *settings) { s.clock = c })
}

// checkRetries returns an error for options that do nothing without retries.
func (s *settings) checkRetries() error {
	if s.retries > 0 || s.upstreams != nil {
		return nil
	}
	if s.budget != nil {
		return valueError("WithRetries", 0, "1 or more: WithRetryBudget does nothing without")
	}
	if s.repeatAny {
		return valueError("WithRetries", 0, "1 or more: RetryNonIdempotent does nothing without")
	}
	return nil
}

// WithLimit adds a limit with its own cost. A request gets the permits of all its limits or none. Each limit is
// settled, stopped and adapted by itself.
//
// At 10 requests/s and 800 tokens/s, requests of 160 tokens go at 5/s, and requests of 8 tokens at 10/s. A request that
// costs more than a limit ever holds goes when the limit is full, and pays the rest afterwards. With several limits,
// late wake-ups lose time at limits below 100 permits/s that save up nothing: at 10/s, 10 ms late gives 9/s.
func WithLimit(l Limit) Option {
	return func(s *settings) error {
		of, list := limit{
			name: l.Name, scope: l.scope(), cost: l.Cost, again: l.Recost, exact: l.Exact, used: l.Used, lost: l.Lost,
			penalty: l.Penalty, adaptive: l.Adaptive, places: l.InFlight, whole: l.Keyed == nil,
		}, &s.limits
		if of.cost == nil {
			of.cost = one
		}
		name, inFlight := strconv.Quote(l.Name), l.InFlight != 0 || l.Key != nil
		switch {
		case inFlight && l.InFlight < 1:
			return valueError("InFlight of limit "+name, l.InFlight, "at least 1")
		case inFlight && !l.onlyInFlight():
			return valueError("InFlight of limit "+name, l.InFlight, "no other field than Name, Key and Cost beside it")
		case inFlight:
			list = &s.inFlight
		case of.scope == nil || l.Keyed != nil && !isnil.Value(l.Limiter):
			return valueError("WithLimit "+name, nil, "either a Limiter or Keyed")
		case l.Penalty < 0:
			return valueError("the Penalty of WithLimit "+name, l.Penalty, "0 or more")
		}
		if l.Name != "" && slices.ContainsFunc(*list, func(o limit) bool { return o.name == l.Name && o.part == nil }) {
			return valueError("WithLimit", l.Name, "a name that no other limit has")
		}
		*list = append(*list, of)
		return nil
	}
}

func (l *Limit) onlyInFlight() bool {
	return l.Limiter == nil && l.Keyed == nil && l.Recost == nil && l.Used == nil && l.Lost == nil && !l.Exact &&
		l.Penalty == 0 && !l.Adaptive
}
