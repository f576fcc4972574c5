package pacetest

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Dialect is how a server tells what is left, and how long a refused client must stay away. The zero Dialect tells
// nothing: a bare 429. In the names of headers, * stands for the name of the limit.
type Dialect struct {
	Name   string // for people: "GitHub"
	Status int    // of refusals; 0: 429
	// RetryAfter is the header of a refusal's wait, if known: in whole seconds, rounded up, or in milliseconds where
	// the name ends in "-Ms".
	RetryAfter string
	// Limit, Remaining and Reset are in all answers. Reset is when there is another permit; with Bucket, when all
	// are. It is in seconds, rounded up; a changed copy of GitHub, OpenAI, Anthropic or Discord writes it as they do.
	Limit, Remaining, Reset string
	Bucket                  bool
	form                    form // of Reset
	// Fill and Interval are the headers of permits a second.
	Fill, Interval string
	// Draft adds RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11).
	Draft  bool
	Header http.Header
	// Body, if not nil, is the body of a refusal.
	Body func(State) string
}

// A form is how a dialect writes its Reset.
type form int

const (
	seconds  form = iota // until then, rounded up to whole ones
	after                // seconds until then, with three decimals
	duration             // "1m30.5s"
	epoch                // whole seconds since 1970, rounded up
	rfc3339              // a date, rounded up to whole seconds
)

// The dialects that package outbound knows.
var (
	Bare         = Dialect{Name: "bare 429"}
	RetryAfter   = Dialect{Name: "Retry-After", RetryAfter: "Retry-After"}
	Unavailable  = Dialect{Name: "503", RetryAfter: "Retry-After", Status: http.StatusServiceUnavailable}
	RetryAfterMs = Dialect{Name: "Retry-After-Ms", RetryAfter: "Retry-After-Ms"}
	Draft        = Dialect{Name: "RateLimit-Policy", RetryAfter: "Retry-After", Draft: true}

	GitHub = Dialect{
		Name: "GitHub", Status: http.StatusForbidden,
		Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset", form: epoch,
	}
	GitLab = Dialect{
		Name: "GitLab", RetryAfter: "Retry-After",
		Limit: "Ratelimit-Limit", Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset", form: epoch,
	}
	Okta = Dialect{
		Name:  "Okta",
		Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset", form: epoch,
	}
	OpenAI = Dialect{
		Name: "OpenAI", RetryAfter: "Retry-After-Ms", Bucket: true, form: duration,
		Limit: "X-Ratelimit-Limit-*", Remaining: "X-Ratelimit-Remaining-*", Reset: "X-Ratelimit-Reset-*",
	}
	Anthropic = Dialect{
		Name: "Anthropic", RetryAfter: "Retry-After", Bucket: true, form: rfc3339,
		Limit: "Anthropic-Ratelimit-*-Limit", Remaining: "Anthropic-Ratelimit-*-Remaining",
		Reset: "Anthropic-Ratelimit-*-Reset",
		Body:  func(State) string { return `{"type":"error","error":{"type":"rate_limit_error"}}` },
	}
	Discord = Dialect{
		Name: "Discord", RetryAfter: "Retry-After",
		Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset-After", form: after,
		Body: func(s State) string {
			when := ""
			if s.Wait > 0 {
				when = fmt.Sprintf(`"retry_after":%.3f,`, s.Wait.Seconds())
			}
			return `{"message":"You are being rate limited.",` + when + `"global":false}`
		},
	}
	Atlassian = Dialect{
		Name: "Atlassian Data Center", RetryAfter: "Retry-After", Limit: "X-Ratelimit-Limit",
		Remaining: "X-Ratelimit-Remaining", Fill: "X-Ratelimit-Fillrate", Interval: "X-Ratelimit-Interval-Seconds",
	}
	Google = Dialect{Name: "Google", Body: func(s State) string {
		details := ""
		if s.Wait > 0 {
			details = fmt.Sprintf(`,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%.3fs"}]`,
				s.Wait.Seconds())
		}
		return `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"` + details + `}}`
	}}
	// Shopify is its GraphQL API's, at paths that end in /graphql.json. It refuses with status 200.
	Shopify = Dialect{
		Name: "Shopify GraphQL", Status: http.StatusOK, Header: http.Header{"X-Shopid": {"1"}},
		Body: func(s State) string {
			status := "" // only where it is known when there is room: clients compute that from it
			if s.Wait > 0 {
				rate := max(s.Rate, 1)
				status = fmt.Sprintf(`,"throttleStatus":{"maximumAvailable":%d,"currentlyAvailable":%g,"restoreRate":%g}`,
					max(s.Limit, s.Cost), float64(s.Cost)-float64(rate*s.Wait.Seconds()), rate)
			}
			return fmt.Sprintf(`{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":`+
				`{"requestedQueryCost":%d%s}}}`, s.Cost, status)
		},
	}
)

func (d *Dialect) write(h http.Header, now time.Time, s State) {
	set := func(name, value string) {
		if name != "" {
			h.Set(strings.Replace(name, "*", s.Name, 1), value)
		}
	}
	for name, values := range d.Header {
		h[name] = values
	}
	if s.Limit == 0 {
		return // it has none
	}
	set(d.Limit, strconv.Itoa(s.Limit))
	set(d.Remaining, strconv.Itoa(s.Left))
	reset := s.Next
	if d.Bucket && s.Rate > 0 {
		reset = time.Duration(float64(s.Limit-s.Left) / s.Rate * float64(time.Second))
	}
	if reset > 0 {
		set(d.Reset, d.form.format(now, reset))
	}
	if s.Rate > 0 {
		set(d.Fill, strconv.FormatFloat(s.Rate, 'g', -1, 64))
		set(d.Interval, "1")
	}
	if d.Draft && s.Rate > 0 {
		w := max(1, math.Ceil(float64(s.Limit)/s.Rate-1e-9))
		h.Add("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=%d`, s.Name, int(math.Round(s.Rate*w)), int(w)))
		h.Add("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, s.Name, s.Left, max(1, ceil(s.Next, time.Second))))
	}
}

func (d *Dialect) refuse(h http.Header, s State) (body string) {
	if s.Wait > 0 && d.RetryAfter != "" {
		unit := time.Second
		if strings.HasSuffix(d.RetryAfter, "-Ms") {
			unit = time.Millisecond
		}
		h.Set(d.RetryAfter, strconv.FormatInt(ceil(s.Wait, unit), 10))
	}
	if d.Body != nil {
		body = d.Body(s)
	}
	return body
}

func (f form) format(now time.Time, d time.Duration) string {
	switch f {
	case after:
		return fmt.Sprintf("%.3f", d.Seconds())
	case duration:
		return d.Round(time.Millisecond).String()
	case epoch:
		return strconv.FormatInt(ceil(time.Duration(now.Add(d).UnixNano()), time.Second), 10)
	case rfc3339:
		return now.Add(d + time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
	default:
		return strconv.FormatInt(ceil(d, time.Second), 10)
	}
}

func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
