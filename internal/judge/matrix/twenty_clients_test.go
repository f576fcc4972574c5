package matrix

import (
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// Those who know nothing write one line.
var (
	Adaptive = APIClient{Name: "unknown, adaptive", Lines: 1, New: outboundOf(nil, outbound.Adaptive())}
	Learning = APIClient{Name: "unknown", Lines: 1, New: outboundOf(nil)}
)

// outboundOf returns a transport of these options, which retries. The limiter is made in the bubble.
func outboundOf(by func() reserve.Reserver, opts ...outbound.Option) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		var limiter reserve.Reserver
		if by != nil {
			limiter = by()
		}
		return reserve.Must(outbound.New(base, limiter, append([]outbound.Option{outbound.WithRetries(10)}, opts...)...))
	}
}

// documented returns a client whose options are made in the bubble.
func documented(lines int, by func() reserve.Reserver, opts func() []outbound.Option) APIClient {
	return APIClient{Name: "documented", Lines: lines, New: func(base http.RoundTripper) http.RoundTripper {
		var all []outbound.Option
		if opts != nil {
			all = opts()
		}
		return outboundOf(by, all...)(base)
	}}
}

func windowOf(n int, per time.Duration) func() reserve.Reserver {
	return func() reserve.Reserver { return reserve.Must(window.New(n, per)) }
}

// windows returns a window for each key.
func windows[K comparable](n int, per time.Duration) func(K) reserve.Reserver {
	p := reserve.Must(window.Policy(n, per))
	return keyed.New(func(K) (*reserve.Policy, error) { return p, nil }).For
}

func tokenBucket(rate, size float64) func() reserve.Reserver {
	return func() reserve.Reserver { return reserve.Must(pace.NewTokenBucket(rate, size)) }
}

func costOf(of func(*http.Request) (string, float64)) func(*http.Request) int {
	return func(r *http.Request) int { _, n := of(r); return int(n) }
}

func path(r *http.Request) string { return r.URL.Path }

// penalized is a window whose server refuses everything for a time after a refusal.
func penalized(n int, per, penalty time.Duration) []outbound.Option {
	return []outbound.Option{outbound.WithLimit(outbound.Limit{Limiter: reserve.Must(window.New(n, per)), Penalty: penalty})}
}

func none() reserve.Reserver { return nil }

var (
	gitHub = []APIClient{documented(12, nil, func() []outbound.Option {
		return []outbound.Option{
			outbound.WithLimit(outbound.Limit{Name: "core", Cost: costOf(notSearch),
				Limiter: reserve.Must(calendar.New(5000, calendar.Every(time.Hour)))}),
			outbound.WithLimit(outbound.Limit{Name: "search", Cost: costOf(to("/search")),
				Limiter: reserve.Must(calendar.New(30, calendar.Every(time.Minute)))}),
			outbound.WithLimit(outbound.Limit{Name: "points", Cost: costOf(points),
				Limiter: reserve.Must(window.New(900, time.Minute))}),
			outbound.WithLimit(outbound.Limit{Name: "content", Cost: costOf(by("POST")),
				Limiter: reserve.Must(window.New(80, time.Minute))}),
		}
	})}
	stripe = []APIClient{documented(5, windowOf(100, time.Second), func() []outbound.Option {
		return []outbound.Option{
			outbound.WithLimit(outbound.Limit{Name: "endpoint-rate", Keyed: outbound.Keyed(path, windows[string](25, time.Second))}),
			outbound.WithMaxInFlight(20),
		}
	})}
	shopifyREST    = []APIClient{documented(1, tokenBucket(2, 40), nil)}
	shopifyGraphQL = []APIClient{documented(4, nil, func() []outbound.Option {
		cost := func(r *http.Request) int { return int(bodyOf(r).Cost) }
		return []outbound.Option{outbound.WithLimit(outbound.Limit{Limiter: tokenBucket(50, 1000)(), Cost: cost})}
	})}
	slack = []APIClient{documented(12, nil, func() []outbound.Option {
		tiers := map[string]*reserve.Policy{
			"/api/conversations.history": reserve.Must(window.Policy(50, time.Minute)),
			"/api/users.list":            reserve.Must(window.Policy(20, time.Minute)),
			"/api/chat.postMessage":      reserve.Must(pace.Bursty(math.Inf(1))),
		}
		methods := keyed.New(func(path string) (*reserve.Policy, error) { return tiers[path], nil })
		return []outbound.Option{
			outbound.PerKey(path, methods.For),
			outbound.WithLimit(outbound.Limit{
				Keyed: outbound.Keyed(func(r *http.Request) string { return bodyOf(r).Channel }, windows[string](1, time.Second)),
				Cost:  costOf(slackMethod("chat.postMessage")),
			}),
		}
	})}
	discord = []APIClient{documented(1, windowOf(50, time.Second), nil)}
	jira    = []APIClient{documented(10, nil, func() []outbound.Option {
		return []outbound.Option{
			outbound.WithLimit(outbound.Limit{Name: "jira-quota-tenant-based", Cost: costOf(points),
				Limiter: reserve.Must(calendar.New(65000, calendar.Every(time.Hour)))}),
			outbound.WithLimit(outbound.Limit{Name: "jira-burst-based", Limiter: tokenBucket(50, 100)()}),
			outbound.WithLimit(outbound.Limit{Name: "jira-per-issue-on-write", Cost: costOf(by("PUT")),
				Keyed: outbound.Keyed(path, windows[string](20, 2*time.Second))}),
		}
	})}
	salesforce = []APIClient{documented(8, none, func() []outbound.Option {
		other := 0
		return []outbound.Option{outbound.WithMaxInFlight(5, func(r *http.Request) string {
			if strings.HasSuffix(r.URL.Path, "query") {
				return "long"
			}
			other++ // any number of short ones
			return string(rune('a' + other%64))
		})}
	})}
	hubSpot = []APIClient{documented(1, windowOf(100, 10*time.Second), nil)}
	zendesk = []APIClient{documented(6, func() reserve.Reserver {
		return reserve.Must(calendar.New(400, calendar.Every(time.Minute)))
	}, func() []outbound.Option {
		return []outbound.Option{outbound.WithLimit(outbound.Limit{Name: "incremental-exports", Cost: costOf(to("/api/v2/incremental")),
			Limiter: reserve.Must(calendar.New(10, calendar.Every(time.Minute)))})}
	})}
	notion   = []APIClient{documented(1, tokenBucket(3, 10), nil)}
	airtable = []APIClient{documented(1, nil, func() []outbound.Option { return penalized(5, time.Second, 30*time.Second) })}
	xAPI     = []APIClient{documented(6, nil, func() []outbound.Option {
		endpoints := map[string]*reserve.Policy{
			"/2/tweets":               reserve.Must(calendar.Policy(300, calendar.Every(15*time.Minute))),
			"/2/tweets/search/recent": reserve.Must(calendar.Policy(60, calendar.Every(15*time.Minute))),
		}
		of := keyed.New(func(path string) (*reserve.Policy, error) { return endpoints[path], nil })
		return []outbound.Option{outbound.PerKey(path, of.For), outbound.WithMaxRetryAfter(16 * time.Minute)}
	})}
	google = []APIClient{documented(1, windowOf(600, time.Minute), nil)}
	aws    = []APIClient{documented(1, tokenBucket(20, 100), nil)}
	azure  = []APIClient{documented(6, nil, func() []outbound.Option {
		return []outbound.Option{
			outbound.WithLimit(outbound.Limit{Name: "reads", Cost: costOf(by("GET")), Limiter: tokenBucket(25, 250)()}),
			outbound.WithLimit(outbound.Limit{Name: "writes", Cost: costOf(by("PUT")), Limiter: tokenBucket(10, 200)()}),
		}
	})}
	okta = []APIClient{documented(2, windowOf(600, time.Minute), func() []outbound.Option {
		return []outbound.Option{outbound.WithMaxInFlight(10)}
	})}
	twilio     = []APIClient{documented(1, none, func() []outbound.Option { return []outbound.Option{outbound.WithMaxInFlight(8)} })}
	cloudflare = []APIClient{documented(1, nil, func() []outbound.Option {
		return penalized(1200, 5*time.Minute, 5*time.Minute)
	})}
	sec       = []APIClient{documented(1, nil, func() []outbound.Option { return penalized(10, time.Second, 10*time.Minute) })}
	mediaWiki = []APIClient{documented(1, tokenBucket(10, 10), nil)}
)
