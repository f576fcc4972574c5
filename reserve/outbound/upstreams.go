package outbound

import (
	"net/http"
	"net/url"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/health"
)

// An Upstream is one of several servers, or keys of a server, that can serve a request: see [NewUpstreams].
type Upstream struct {
	// Base replaces a request's scheme and host, which it must have; its path and query go before the request's.
	Base *url.URL
	// Header replaces the request's headers of the same names: a credential. No other upstream gets it.
	Header http.Header
	// By is the upstream's limit. Upstreams of one account share a limiter. Nil: only the server's stops hold.
	By reserve.Reserver
	// Tier orders upstreams: free ones of the lowest tier are used first.
	Tier int
	// Prepare returns a request as it goes to the upstream, without its body; nil: the upstream does not serve it. The
	// limits of [WithLimit] and [PerKey] get it; if By is nil too, only they hold. Default: Base and Header make the
	// request, and the limits get the caller's.
	Prepare func(*http.Request) *http.Request
}

type upstreams struct {
	all    []*upstream
	sticky queue.Sticky
}

type upstream struct {
	Upstream
	limited bool // By was given
	number  int
	pause   *reserve.Limiter // stops a failing upstream, or one whose limiter can't be paused
	health  health.Health
}
