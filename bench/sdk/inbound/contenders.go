package main

import (
	"net"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// A tier is one limit of a set-up: a number of requests in a time, for each client or for all.
type tier struct {
	name      string
	limit     int
	per       time.Duration
	perClient bool
}

type middleware = func(http.Handler) http.Handler

// A contender makes a middleware out of tiers, the first one outermost.
type contender struct {
	name  string
	build func(tiers []tier) (middleware, error)
}

// Contenders that tables and tests name.
const (
	bare           = "bare handler"
	ours           = "pace inbound"
	withoutHeaders = "pace inbound, no headers"
)

var contenders = []contender{
	{bare, func([]tier) (middleware, error) {
		return func(h http.Handler) http.Handler { return h }, nil
	}},
	{ours, pacing()},
	{withoutHeaders, pacing(inbound.WithoutQuotas())},
	{"httprate", stacked(httprateTier)},
	{"tollbooth", stacked(tollboothTier)},
	{"throttled", stacked(throttledTier)},
	{"ulule/limiter", stacked(ululeTier)},
}

// pacing is one middleware for all tiers, each a token bucket that starts full.
func pacing(opts ...inbound.Option) func([]tier) (middleware, error) {
	return func(tiers []tier) (middleware, error) {
		client, err := inbound.RemoteAddr()
		if err != nil {
			return nil, err
		}
		var all []inbound.Tier
		for _, t := range tiers {
			n := float64(t.limit)
			policy, err := pace.Bursty(reserve.Per(n, t.per), pace.WithCapacity(n), reserve.WithStored(n), reserve.PayUpfront())
			if err != nil {
				return nil, err
			}
			if t.perClient {
				all = append(all, inbound.PerKey(t.name, client, policy))
			} else {
				all = append(all, inbound.Global(t.name, policy))
			}
		}
		m, err := inbound.New(all, opts...)
		if err != nil {
			return nil, err
		}
		return m.Handler, nil
	}
}

// stacked puts a middleware for each tier around the next one's: the peers have no other way.
func stacked(one func(tier) (middleware, error)) func([]tier) (middleware, error) {
	return func(tiers []tier) (middleware, error) {
		all := make([]middleware, len(tiers))
		for i, t := range tiers {
			var err error
			if all[i], err = one(t); err != nil {
				return nil, err
			}
		}
		return func(h http.Handler) http.Handler {
			for i := len(all) - 1; i >= 0; i-- {
				h = all[i](h)
			}
			return h
		}, nil
	}
}

func httprateTier(t tier) (middleware, error) {
	key := httprate.Key("everybody")
	if t.perClient {
		key = func(r *http.Request) (string, error) { // its own, which is deprecated for being without a proxy
			return httprate.CanonicalizeIP(clientOnly{}.Key(r)), nil
		}
	}
	return httprate.LimitBy(t.limit, t.per, key), nil
}

func tollboothTier(t tier) (middleware, error) {
	options := tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: time.Hour}
	l := tollbooth.NewLimiter(reserve.Per(float64(t.limit), t.per), &options)
	l.SetBurst(t.limit)
	l.SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"})
	l.SetIgnoreURL(true)
	if t.perClient {
		return func(h http.Handler) http.Handler { return tollbooth.HTTPMiddleware(l)(h) }, nil
	}
	// Its middleware has no key for everybody, so this one asks with one.
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := tollbooth.LimitByKeys(l, []string{"everybody"}); err != nil {
				http.Error(w, err.Message, err.StatusCode)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, nil
}

// throttledKeys is how many keys throttled's store remembers: as many as pace does.
const throttledKeys = 1 << 20

func throttledTier(t tier) (middleware, error) {
	store, err := memstore.NewCtx(throttledKeys)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(t.limit, t.per), MaxBurst: t.limit - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	m := &throttled.HTTPRateLimiterCtx{RateLimiter: l}
	if t.perClient {
		m.VaryBy = clientOnly{} // its own VaryBy takes the port for a part of the client
	}
	return m.RateLimit, nil
}

type clientOnly struct{}

func (clientOnly) Key(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func ululeTier(t tier) (middleware, error) {
	l := limiter.New(memory.NewStore(), limiter.Rate{Limit: int64(t.limit), Period: t.per})
	m := stdlib.NewMiddleware(l)
	if !t.perClient {
		m.KeyGetter = func(*http.Request) string { return "everybody" }
	}
	return m.Handler, nil
}
