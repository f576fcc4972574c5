package reply

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Refusals in statuses that mean something else, told by a code in the body. A new server is a row. The bodies are
// facts of the servers' documentation and of reports: octokit/plugin-throttling.js#824, monday.com's "error handling",
// Linear's "rate limiting", Slack's "rate limits", Kraken's "rate limits".
func TestCodesInBodies(t *testing.T) {
	const gitHub, json = "https://api.github.com/graphql", "Content-Type: application/json; charset=utf-8"
	for _, c := range []struct {
		name, url string
		status    int
		body      string
		want      Reply // of these: Refused, Final, NotRate, After
	}{
		{"GitHub", gitHub, 200, `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for user ID 1."}]}`, Reply{Refused: true}},
		{"GitHub, since 2025", gitHub, 200, `{"errors":[{"type":"RATE_LIMIT","code":"graphql_rate_limit","message":"API rate limit already exceeded."}]}`, Reply{Refused: true}},
		{"GitHub, no data", gitHub, 200, `{"data":{"viewer":null},"errors":[{"type":"RATE_LIMITED"}]}`, Reply{Refused: true}},
		{"GitHub Enterprise", "https://git.example.com/api/graphql", 200, `{"data":null,"errors":[{"type":"RATE_LIMITED"}]}`, Reply{Refused: true}},
		{"GitHub, data all the same", gitHub, 200, `{"data":{"viewer":{"login":"x"}},"errors":[{"type":"RATE_LIMITED"}]}`, Reply{}},
		{"GitHub, an issue about it", gitHub, 200, `{"data":{"issue":{"type":"RATE_LIMITED","title":"RATE_LIMITED"}}}`, Reply{}},
		{"GitHub, another error", gitHub, 200, `{"data":null,"errors":[{"type":"NOT_FOUND","message":"rate limit"}]}`, Reply{}},
		{"GitHub, not JSON", gitHub, 200, `"RATE_LIMITED"`, Reply{}},
		{"Shopify", "https://x.myshopify.com/graphql", 200, `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}`, Reply{Refused: true}},
		{"Linear", "https://api.linear.app/graphql", 400, `{"errors":[{"message":"Rate limit exceeded","extensions":{"type":"ratelimited","code":"RATELIMITED","statusCode":400}}]}`, Reply{Refused: true}},
		{"Linear, a mistake", "https://api.linear.app/graphql", 400, `{"errors":[{"message":"x","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, Reply{}},
		{"monday.com", "https://api.monday.com/v2", 200, `{"errors":[{"message":"Complexity budget exhausted","extensions":{"code":"COMPLEXITY_BUDGET_EXHAUSTED","retry_in_seconds":12,"status_code":429}}],"account_id":1}`,
			Reply{Refused: true, After: 12 * time.Second}},
		{"monday.com, before 2024-10", "https://api.monday.com/v2", 200, `{"error_code":"ComplexityException","status_code":429,"error_message":"Complexity budget exhausted, query cost 30001","account_id":1}`, Reply{Refused: true}},
		{"monday.com, at a time", "https://api.monday.com/v2", 429, `{"errors":[{"extensions":{"code":"maxConcurrencyExceeded"}}]}`, Reply{Refused: true, NotRate: true}},
		{"monday.com, a day", "https://api.monday.com/v2", 200, `{"errors":[{"extensions":{"code":"DAILY_LIMIT_EXCEEDED"}}]}`, Reply{Refused: true, Final: true}},
		{"Slack", "https://slack.com/api/chat.postMessage", 200, `{"ok":false,"error":"ratelimited"}`, Reply{Refused: true}},
		{"Slack, other words", "https://slack.com/api/chat.postMessage", 200, `{"ok":false,"error":"rate_limited"}`, Reply{Refused: true}},
		{"Slack, fine", "https://slack.com/api/x", 200, `{"ok":true,"error":"ratelimited","messages":[{"type":"ratelimited"}]}`, Reply{}},
		{"Slack's words elsewhere", "https://api.example.com/", 200, `{"ok":false,"error":"ratelimited"}`, Reply{}},
		{"Google Maps", "https://maps.googleapis.com/maps/api/geocode/json", 200, `{"results":[],"status":"OVER_QUERY_LIMIT","error_message":"You have exceeded your rate-limit for this API."}`, Reply{Refused: true}},
		{"Kraken", "https://api.kraken.com/0/private/Balance", 200, `{"error":["EAPI:Rate limit exceeded"]}`, Reply{Refused: true}},
		{"VK", "https://api.vk.com/method/users.get", 200, `{"error":{"error_code":6,"error_msg":"Too many requests per second"}}`, Reply{Refused: true}},
		{"Facebook", "https://graph.facebook.com/v20.0/me", 400, `{"error":{"message":"(#4) Application request limit reached","type":"OAuthException","code":4}}`, Reply{Refused: true}},
		{"AWS' older protocol", "https://iam.amazonaws.com/", 400, `<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`, Reply{Refused: true}},
		{"Salesforce, at a time", "https://x.my.salesforce.com/", 403, `[{"message":"ConcurrentRequests Limit exceeded.","errorCode":"REQUEST_LIMIT_EXCEEDED"}]`, Reply{Refused: true, NotRate: true}},
		{"any, a code in a 403", "https://api.example.com/", 403, `{"error":{"code":"rate_limit_exceeded"}}`, Reply{Refused: true}},
		{"any, too many at a time", "https://api.example.com/", 429, `{"code":"CONCURRENCY_LIMIT_EXCEEDED"}`, Reply{Refused: true, NotRate: true}},
		{"any, a message in a 403", "https://api.example.com/", 403, `{"message":"locked: try again in 15 minutes"}`, Reply{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &http.Response{StatusCode: c.status, Header: headers(json, "X-Amzn-Requestid: 1"), Body: io.NopCloser(strings.NewReader(c.body))}
			r.Request = httptest.NewRequest(http.MethodPost, c.url, nil)
			s := Read(r, received)
			require.Equal(t, c.want, Reply{Refused: s.Refused, Final: s.Final, NotRate: s.NotRate, After: s.After})
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(body), "the caller reads it, too")
		})
	}
}

// A client that asks for an encoding itself gets refusals in it. The caller gets them as they came.
func TestCompressed(t *testing.T) {
	const body = `{"message":"You are being rate limited.","retry_after":20.25,"global":false}`
	packed := func(w func(io.Writer) io.WriteCloser, body string) string {
		var b bytes.Buffer
		z := w(&b)
		io.WriteString(z, body)
		z.Close()
		return b.String()
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zl := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	raw := func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 9); return z }
	for _, c := range []struct {
		name, encoding, body string
		want                 time.Duration
	}{
		{"gzip", "gzip", packed(gz, body), 20250 * time.Millisecond},
		{"in capitals", "GZIP", packed(gz, body), 20250 * time.Millisecond},
		{"its old name", "x-gzip", packed(gz, body), 20250 * time.Millisecond},
		{"deflate", "deflate", packed(zl, body), 20250 * time.Millisecond},
		{"deflate, by mistake without zlib's header", "deflate", packed(raw, body), 20250 * time.Millisecond},
		{"none", "identity", body, 20250 * time.Millisecond},
		{"not really", "gzip", body, 20250 * time.Millisecond},
		{"cut off", "gzip", packed(gz, body)[:20], 0},
		{"another", "br", packed(gz, body), 0},
		{"a bomb", "gzip", packed(gz, strings.Repeat(" ", 1<<24)+body), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &http.Response{StatusCode: 429, Header: headers("Content-Encoding: " + c.encoding), Body: io.NopCloser(strings.NewReader(c.body))}
			require.Equal(t, c.want, Read(r, received).After)
			got, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(got))
		})
	}
}

// A cache tells how old a refusal is, and whatever else is in it is as old.
func TestCachedRefusal(t *testing.T) {
	for _, c := range []struct {
		status int
		lines  string
		want   Reply // of these: Refused, Cached, After
	}{
		{429, "Age: 10\nRetry-After: 30", Reply{Refused: true, After: 20 * time.Second}},
		{503, "Age: 10\nRetry-After: 30", Reply{Refused: true, After: 20 * time.Second}},
		{429, "Age: 10\nRetry-After: 5", Reply{Refused: true}},
		{429, "Age: 10\nDate: Sat, 21 Nov 2026 11:59:50 GMT\nRetry-After: Sat, 21 Nov 2026 12:00:20 GMT", Reply{Refused: true, After: 20 * time.Second}},
		{429, "Age: 10\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60", Reply{Refused: true}},
		{429, "X-From-Cache: 1\nRetry-After: 30", Reply{Refused: true, After: 30 * time.Second}},
		{200, "Age: 10\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60", Reply{Cached: true}},
	} {
		s := read(c.status, headers(strings.Split(c.lines, "\n")...))
		require.Equal(t, c.want, Reply{Refused: s.Refused, Cached: s.Cached, After: s.After}, c.lines)
		require.Empty(t, s.Limits)
	}
}

// That a server refuses, or that nothing is left, is one fact; until when is another, which may be missing.
func TestFactsWithoutTimes(t *testing.T) {
	const past = "1795262400" // is Date
	for _, c := range []struct {
		lines          string
		refused, empty bool
	}{
		{"X-RateLimit-Remaining: 0", true, true},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: " + past, true, true},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262399.5", true, true},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 0", true, true},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: soon", true, true},
		{"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 99999999999", true, true},
		{"RateLimit-Remaining: 0\nRateLimit-Reset: 0", true, true},
		{"X-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: " + past, true, true},
		{`RateLimit: "a";r=0`, true, true},
		{`RateLimit: "a";r=0;t=0`, true, false}, // for a moment
		{"Retry-After: soon", true, false},
		{"Retry-After: Sat, 21 Nov 2026 11:59:00 GMT", true, false},
		{"X-RateLimit-Reset: " + past, true, true},
		{"Zendesk-RateLimit-Incremental-Exports: total=10; remaining=0", true, true},
		{"X-RateLimit-Remaining: 1\nX-RateLimit-Reset: " + past, false, false},
		{"X-RateLimit-Remaining: 1", false, false},
		{"X-RateLimit-Limit: 60", false, false},
	} {
		h := headers(strings.Split(c.lines, "\n")...)
		h.Set("Date", cmp.Or(h.Get("Date"), "Sat, 21 Nov 2026 12:00:00 GMT"))
		s := read(403, h)
		require.Equal(t, c.refused, s.Refused, c.lines)
		require.Equal(t, c.empty, s.Empty, c.lines)
		require.False(t, read(200, h).Refused, c.lines)
	}
}
