package llm

import (
	"net/http"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
)

var valueError = invalid.In("llm")

// An Option changes one setting of [New].
type Option func(*settings) error

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

type settings struct {
	limits     map[string]Limits // by model
	estimate   func(r *http.Request, body []byte) (input, output int)
	margin     time.Duration
	window     time.Duration
	bucket     time.Duration
	settles    bool
	answer     bool
	refunds    bool
	large      bool
	asks       bool
	told       func(key Key, u Usage) // nil: nobody wants to know
	cacheReads bool
	limiters   func(limit string, key Key) reserve.Reserver
	key        func(r *http.Request, key Key) Key
	maxKeys    int
	clock      clockwork.Clock
	clocked    []reserve.Option // for limiters; nil: the real clock
	unlimited  *reserve.Policy  // of the limiter for a key without a limit of requests
	outbound   []outbound.Option
}

// WithModel gives a model its own limits, instead of those of [New].
func WithModel(model string, l Limits) Option {
	return func(s *settings) error {
		s.limits[cutModel(model)] = l
		return l.check()
	}
}

// WithEstimate sets the function that estimates a request's input and output tokens. It must neither change nor keep
// the body, which is nil without one of at most 8 MiB. A negative number counts as 0. Where the provider settles, the
// latest calls correct both numbers.
func WithEstimate(f func(r *http.Request, body []byte) (input, output int)) Option {
	return checked(f != nil, "WithEstimate", nil, "a function", func(s *settings) { s.estimate = f })
}

// WithMargin sets how much longer each window is than the provider's; a negative margin counts as 0. Default: 250 ms,
// which costs 0.4 % of a limit a minute.
func WithMargin(d time.Duration) Option { return set(func(s *settings) { s.margin = max(0, d) }) }

// WithRequestWindow sets the time over which the provider counts requests: at 600 a minute, 10 s means 100 in any 10 s.
// The margin is added: 1 s costs 20 % of the rate. Default: a minute; for [AzureOpenAI] 10 s.
func WithRequestWindow(d time.Duration) Option {
	ok := d > 0 && d <= time.Minute
	return checked(ok, "WithRequestWindow", d, "more than 0 and at most a minute", func(s *settings) { s.window = d })
}

// WithBucket takes limits a minute for token buckets, which start full and hold what refills in capacity less the
// margin: at 1,000,000 tokens a minute, WithBucket(10*time.Second) lets 162,500 go at once and 16,667 more each second.
// If the provider's hold less, calls are refused after idle times. 0: windows, which fit both kinds. Default: 0; for
// [Anthropic] a minute.
func WithBucket(capacity time.Duration) Option {
	ok := capacity == 0 || capacity >= time.Second && capacity <= time.Hour
	return checked(ok, "WithBucket", capacity, "0, or from a second to an hour", func(s *settings) { s.bucket = capacity })
}

// WithSettling says whether the provider gives back what it held for a call beyond its use. If not, a call stays
// charged its uncorrected estimate. Default: the preset's.
func WithSettling(settles bool) Option { return set(func(s *settings) { s.settles = settles }) }

// AnswerRefusals answers a call that is too large or can't go in time with a response instead of an error: status 429,
// a body in the provider's form, and "x-should-retry: false". OpenAI's and Anthropic's clients return it at once; an
// error they try three times in vain. The end of a context remains an error.
func AnswerRefusals() Option { return set(func(s *settings) { s.answer = true }) }

// WithLimiters sets the function that returns the limiter of a limit and key, such as one that many machines share. The
// limit is "requests", "tokens", "input-tokens", "output-tokens", "requests-per-day", "tokens-per-day" or "images". The
// function is called for each, and with the zero Key for keys without a place ([WithMaxKeys]). Where it returns nil,
// the limit holds in this process, if there is one. Several goroutines may call it, also twice for one key: one answer
// counts. Its limiter gets no margin, and no response changes it. A call asks twice, one call after the other: where
// Redis is far away, use shared.WithAhead.
func WithLimiters(f func(limit string, key Key) reserve.Reserver) Option {
	return set(func(s *settings) { s.limiters = f })
}

// WithKey sets the function that says whose quota a request uses, given its own key. At OpenAI and Anthropic all API
// keys of an organization share one quota:
//
//	llm.WithKey(func(_ *http.Request, key llm.Key) llm.Key { key.Credential = 0; return key })
func WithKey(f func(r *http.Request, key Key) Key) Option {
	return checked(f != nil, "WithKey", nil, "a function", func(s *settings) { s.key = f })
}

// RefundFailures charges a call without a response, or with a status from 500 on, a request and no tokens. Default: its
// estimate, once, because the provider may have done its work.
func RefundFailures() Option { return set(func(s *settings) { s.refunds = true }) }

// AskForUsage adds stream_options.include_usage to streamed chat completions without stream_options, and takes the
// usage out of the stream again. It is recommended for servers that don't refuse stream_options: without it such a
// stream is charged its estimate and its text, which lacks reasoning.
func AskForUsage() Option { return set(func(s *settings) { s.asks = true }) }

// WithUsage sets a function that is told once what each sent call used, when its response has ended or the call has
// failed: the estimate charged, if the response tells no usage, and nothing for a refused call. The key is [WithKey]'s.
// Several goroutines call it, under no lock.
func WithUsage(f func(key Key, u Usage)) Option {
	return checked(f != nil, "WithUsage", nil, "a function", func(s *settings) { s.told = f })
}

// CacheReadsCount counts input read from a cache as other input, for the models that Anthropic's table of limits marks.
// Default: it costs nothing at Anthropic and Bedrock. OpenAI and Google always count it.
func CacheReadsCount() Option { return set(func(s *settings) { s.cacheReads = true }) }

// RefuseTooLarge makes a call fail at once with a *[TooLargeError] if half of its estimated prompt plus the output that
// it allows exceeds a limit of tokens. Default: at [OpenAI] and [AzureOpenAI], if a response has told the limit. Other
// calls go when the limit is full.
func RefuseTooLarge() Option { return set(func(s *settings) { s.large = true }) }

// WithMaxKeys sets how many keys have limits of their own: invented names of models can't fill the memory. Past it, a
// new key replaces a key that has been idle for as long as its limits look back. If none is idle, it shares a set of
// limits with all others without a place, and [Ignored].Crowded counts its calls. Default: 1024.
func WithMaxKeys(n int) Option {
	return checked(n >= 1, "WithMaxKeys", n, "at least 1", func(s *settings) { s.maxKeys = n })
}

// WithOutbound passes options to the [outbound.Transport] that paces: hooks, a logger, retries, the longest wait.
func WithOutbound(opts ...outbound.Option) Option {
	return set(func(s *settings) { s.outbound = append(s.outbound, opts...) })
}

// WithClasses orders waiting calls of one key (with [NewDeployments] of one model) as package fair does: people before
// a batch, tenants by their shares of the tokens. The function returns a call's class and tenant; nil: those of
// [fair.With] in the request's context, which an SDK passes on. [New] returns the errors of [fair.New].
func WithClasses(of func(*http.Request) (class, tenant string), classes ...fair.Class) Option {
	return WithOutbound(outbound.WithClasses(of, classes...))
}

// WithClock replaces the clock, for tests. Default: the real one.
func WithClock(c clockwork.Clock) Option {
	return checked(c != nil, "WithClock", nil, "a clock", func(s *settings) {
		s.clock, s.clocked, s.unlimited = c, []reserve.Option{reserve.WithClock(c)}, queue.Unlimited(c)
		s.outbound = append(s.outbound, outbound.WithClock(c))
	})
}
