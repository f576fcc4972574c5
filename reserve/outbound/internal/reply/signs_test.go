package reply

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Refusals in statuses that are none by themselves, as their servers document them.
func TestSigns(t *testing.T) {
	const google = `{"error":{"errors":[{"domain":"usageLimits","reason":"%s"}],"code":403}}`
	for _, c := range []struct {
		name, url      string
		status         int
		header         []string
		body           string
		refused, final bool
		after, penalty time.Duration
	}{
		{name: "Google, a user", status: 403, body: strings.ReplaceAll(google, "%s", "userRateLimitExceeded"), refused: true},
		{name: "Google, a project", status: 403, body: strings.ReplaceAll(google, "%s", "rateLimitExceeded"), refused: true},
		{name: "Google, a day", url: "https://www.googleapis.com/", status: 403, body: strings.ReplaceAll(google, "%s", "dailyLimitExceeded"), refused: true, final: true},
		{name: "Google, YouTube's day", url: "https://youtube.googleapis.com/", status: 403, body: strings.ReplaceAll(google, "%s", "quotaExceeded"), refused: true, final: true},
		{name: "Google's words elsewhere", url: "https://notgoogleapis.com/", status: 403, body: strings.ReplaceAll(google, "%s", "quotaExceeded"), refused: true},
		{name: "Google, forbidden", status: 403, body: strings.ReplaceAll(google, "%s", "insufficientPermissions")},
		{name: "AWS, header", status: 400, header: []string{"X-Amzn-Errortype: ThrottlingException:http://x"}, refused: true},
		{name: "AWS, body", status: 400, header: []string{"X-Amzn-Requestid: 1"},
			body: `{"__type":"com.amazon.coral.availability#ThrottlingException"}`, refused: true},
		{name: "AWS, another mistake", status: 400, header: []string{"X-Amzn-Errortype: ValidationException"}},
		{name: "MediaWiki", status: 200, header: []string{"MediaWiki-API-Error: maxlag", "Retry-After: 5"}, refused: true,
			after: 5 * time.Second},
		{name: "MediaWiki, another mistake", status: 200, header: []string{"MediaWiki-API-Error: nosuchpage"}},
		{name: "Salesforce, at a time", status: 403, refused: true,
			body: `[{"message":"ConcurrentRequests Limit exceeded.","errorCode":"REQUEST_LIMIT_EXCEEDED"}]`},
		{name: "Salesforce, a day", status: 403, refused: true, final: true,
			body: `[{"message":"TotalRequests Limit exceeded.","errorCode":"REQUEST_LIMIT_EXCEEDED"}]`},
		{name: "SEC", status: 403, body: "<html><title>Request Rate Threshold Exceeded</title></html>", refused: true, penalty: 10 * time.Minute},
		{name: "Airtable", status: 429, body: `{"errors":[{"error":"RATE_LIMIT_REACHED"}]}`, refused: true, penalty: 30 * time.Second},
		{name: "GitHub", status: 403, body: `{"message":"You have exceeded a secondary rate limit."}`, refused: true, penalty: time.Minute},
		{name: "OpenAI", url: "https://api.openai.com/v1/x", status: 429, body: `{"error":{"code": "insufficient_quota"}}`, refused: true, final: true},
		{name: "OpenAI's words for a limit a minute of another's", status: 429, body: `{"error":{"code": "insufficient_quota"}}`, refused: true},
		{name: "a text of theirs", status: 200, body: `"insufficient_quota"`},
		{name: "forbidden", status: 403, body: "<html>Forbidden</html>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &http.Response{StatusCode: c.status, Header: headers(c.header...), Body: io.NopCloser(strings.NewReader(c.body))}
			r.Request = httptest.NewRequest(http.MethodPost, cmp.Or(c.url, "https://api.example.com/"), nil)
			s := Read(r, received)
			require.Equal(t, c.refused, s.Refused)
			require.Equal(t, c.final, s.Final)
			require.Equal(t, c.after, s.After)
			require.Equal(t, c.penalty, s.Penalty)
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(body), "the caller reads it, too")
		})
	}
}

// Headers whose values must be taken apart, and servers that tell neither a reset nor a rate.
func TestLefts(t *testing.T) {
	hubSpot := Dialect{Limit: "X-HubSpot-RateLimit-Max", Remaining: "X-HubSpot-RateLimit-Remaining", Every: 10 * time.Second}
	azure := Dialect{Remaining: "X-Ms-Ratelimit-Remaining-Subscription-Reads", Refill: 25}
	usage := Dialect{Read: func(h http.Header, _ time.Time) []Left {
		var used, of float64
		_, v, _ := strings.Cut(h.Get("Sforce-Limit-Info"), "=")
		u, n, _ := strings.Cut(v, "/")
		used, _ = number(u)
		of, _ = number(n)
		return []Left{{Permits: of - used, Limit: of, Reset: 24 * time.Hour}}
	}}
	for _, c := range []struct {
		name    string
		header  []string
		dialect *Dialect
		want    Limit
	}{
		{"Shopify", []string{"X-Shopify-Shop-Api-Call-Limit: 32/40"}, nil, Limit{Left: 8, Rate: 2, Bucket: true}},
		{"Shopify, nonsense", []string{"X-Shopify-Shop-Api-Call-Limit: many"}, nil, Limit{}},
		{"Zendesk", []string{"Zendesk-RateLimit-Incremental-Exports: total=10; remaining=0; resets=57"}, nil,
			Limit{Name: "incremental-exports", Left: 0, Stop: 57 * time.Second, Ends: 57 * time.Second}},
		{"HubSpot, some", []string{"X-HubSpot-RateLimit-Max: 100", "X-HubSpot-RateLimit-Remaining: 7"}, &hubSpot, Limit{Left: 7, Rate: 10}},
		{"HubSpot, none", []string{"X-HubSpot-RateLimit-Max: 100", "X-HubSpot-RateLimit-Remaining: 0"}, &hubSpot,
			Limit{Left: 0, Rate: 10, Stop: 10 * time.Second}},
		{"Azure", []string{"X-Ms-Ratelimit-Remaining-Subscription-Reads: 249"}, &azure, Limit{Left: 249, Rate: 25, Bucket: true}},
		{"Salesforce", []string{"Sforce-Limit-Info: api-usage=18/15000"}, &usage, Limit{Left: 14982, Ends: 24 * time.Hour}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader := known
			if c.dialect != nil {
				reader = NewReader([]Dialect{*c.dialect})
			}
			r := &http.Response{StatusCode: 200, Header: headers(c.header...), Body: http.NoBody}
			s := reader.Read(r, received)
			if c.want == (Limit{}) {
				require.Empty(t, s.Limits)
				return
			}
			require.Equal(t, []Limit{c.want}, s.Limits)
		})
	}
}

// A unit that is spelled out, and a date as in JSON, are no standard, but servers send them.
func TestRetryAfterWithUnit(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1m30s": 90 * time.Second, "5 seconds": 5 * time.Second, "2 min": 2 * time.Minute,
		received.Add(time.Minute).Format(time.RFC3339): time.Minute, "-5s": 0, "5 apples": 0, "s": 0,
	} {
		require.Equal(t, want, read(429, headers("Retry-After: "+v)).After, v)
	}
}

// A body whose Read panics does so where the caller reads it, and not in a goroutine of its own, where nobody could
// recover.
func TestPanicWhilePeeking(t *testing.T) {
	r := &http.Response{StatusCode: 429, Header: http.Header{}, Body: panics{}}
	require.True(t, Read(r, received).Refused)
	require.PanicsWithValue(t, "on purpose", func() { io.ReadAll(r.Body) })
	require.NoError(t, r.Body.Close())
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("on purpose") }
func (panics) Close() error             { return nil }
