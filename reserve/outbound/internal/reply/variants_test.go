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

// Refusals of other kinds of servers: where they have their code, and how they say until when. A new server is a row.
func TestRefusalsOfOthers(t *testing.T) {
	const any, graphQL, s = "https://api.example.com/v1/x", "https://api.example.com/graphql", time.Second
	refused := func(after time.Duration) Reply { return Reply{Refused: true, After: after} }
	for _, c := range []struct {
		name, url string
		status    int
		lines     string
		body      string
		want      Reply // of these: Refused, Final, NotRate, After
	}{
		// How a wait is spelled.
		{"seconds as a text", any, 429, "", `{"retry_after":"30"}`, refused(30 * s)},
		{"a JavaScript server", any, 429, "", `{"statusCode":429,"error":"Too Many Requests","message":"x","retryAfter":12.5}`, refused(12500 * time.Millisecond)},
		{"in an object of the error's", any, 429, "", `{"error":{"code":"rate_limited","details":{"retryAfterMs":1500}}}`, refused(1500 * time.Millisecond)},
		{"by the name of the unit", any, 429, "", `{"error":{"retry_after_seconds":7}}`, refused(7 * s)},
		{"a duration", any, 429, "", `{"error":{"retryAfter":"1m30s"}}`, refused(90 * s)},
		{"a point in time", any, 429, "", `{"error":"rate_limited","retry_at":"2026-11-21T12:00:45Z"}`, refused(45 * s)},
		{"an epoch", any, 429, "", `{"error":{"type":"usage_limit_reached","resets_at":1795262520}}`, refused(120 * s)},
		{"the rest of the time", any, 429, "", `{"error":{"type":"usage_limit_reached","resets_in_seconds":120}}`, refused(120 * s)},
		{"in words, a reset", any, 429, "", `{"error_message":"Complexity budget exhausted, query cost 30001 budget remaining 29986 out of 1000000 reset in 10 seconds"}`, refused(10 * s)},
		{"in words, please wait", any, 429, "", `Too many requests. Please wait 20 seconds.`, refused(20 * s)},
		{"in words, about", any, 429, "", `{"message":"Rate limited. Please try again in about 5 minutes"}`, refused(300 * s)},
		{"0 is no wait", any, 429, "", `{"retry_after":0}`, refused(0)},
		{"less than 0 is none", any, 429, "", `{"retry_after":-5}`, refused(0)},
		{"null is none", any, 429, "", `{"retry_after":null}`, refused(0)},
		{"of an event", any, 429, "", "data: {\"error\":{\"retry_after\":3}}\n\n", refused(3 * s)},
		{"of the first line", any, 429, "", "{\"error\":{\"retry_after\":3}}\n{\"done\":true}\n", refused(3 * s)},
		{"behind Google's prefix", any, 429, "", ")]}'\n{\"error\":{\"details\":[{\"retryDelay\":\"4s\"}]}}", refused(4 * s)},
		{"a page with braces", any, 429, "", "<html><style>a {color: red}</style>Slow down</html>", refused(0)},
		{"a header, in ISO 8601", any, 429, "Retry-After: PT1M30S", "", refused(90 * s)},
		{"a header, with its unit", any, 429, "Retry-After: 30sec", "", refused(30 * s)},
		{"a header, with a capital", any, 429, "Retry-After: 2 Minutes", "", refused(120 * s)},
		{"a header, hours", any, 429, "Retry-After: 1 hour", "", refused(time.Hour)},
		{"a header, days", any, 429, "Retry-After: 1 day", "", refused(24 * time.Hour)},
		{"a header, milliseconds", any, 429, "Retry-After: 1500 ms", "", refused(1500 * time.Millisecond)},
		{"a header, microseconds since 1970", any, 429, "Retry-After: 1795262430000000", "", refused(30 * s)},
		{"gRPC's pushback", any, 429, "Grpc-Retry-Pushback-Ms: 250", "", refused(250 * time.Millisecond)},
		{"gRPC's pushback, never again", any, 429, "Grpc-Retry-Pushback-Ms: -1", "", refused(0)},
		// Which statuses and codes refuse.
		{"420", any, 420, "", "Enhance Your Calm", refused(0)},
		{"420, with a time", any, 420, "Retry-After: 60", "", refused(60 * s)},
		{"509", any, 509, "", "Bandwidth Limit Exceeded", refused(0)},
		{"598 is a timeout", any, 598, "", "", Reply{}},
		{"500 is a mistake", any, 500, "Retry-After: 5", "", Reply{After: 5 * s}},
		{"503, in the past by a second", any, 503, "Date: Sat, 21 Nov 2026 12:00:01 GMT\nRetry-After: Sat, 21 Nov 2026 12:00:00 GMT", "", refused(0)},
		{"202 is an answer", any, 202, "Retry-After: 5", "{}", Reply{After: 5 * s}},
		{"gRPC, the status in the header", any, 200, "Content-Type: application/grpc\nGrpc-Status: 8", "", refused(0)},
		{"gRPC, with a pushback", any, 200, "Content-Type: application/grpc-web+proto\nGrpc-Status: 8\nGrpc-Retry-Pushback-Ms: 700", "", refused(700 * time.Millisecond)},
		{"gRPC, too large", any, 200, "Content-Type: application/grpc\nGrpc-Status: 8\n" +
			"Grpc-Message: grpc: received message larger than max (5242880 vs. 4194304)", "", Reply{}},
		{"gRPC, another status", any, 200, "Content-Type: application/grpc\nGrpc-Status: 13", "", Reply{}},
		{"Twirp", any, 429, "", `{"code":"resource_exhausted","msg":"x","meta":{"retry_after":"9"}}`, refused(9 * s)},
		{"a number for a code", graphQL, 200, "", `{"errors":[{"message":"Too many","extensions":{"code":429}}]}`, refused(0)},
		{"a number as a text", graphQL, 200, "", `{"errors":[{"message":"Too many","extensions":{"code":"429"}}]}`, refused(0)},
		{"Hasura", "https://api.example.com/v1/graphql", 200, "", `{"errors":[{"extensions":{"path":"$","code":"rate-limit-exceeded"},"message":"Rate limit exceeded"}]}`, refused(0)},
		{"AppSync", graphQL, 200, "", `{"data":null,"errors":[{"errorType":"ThrottlingException","message":"Rate exceeded"}]}`, refused(0)},
		{"Shopify's storefront", "https://x.myshopify.com/api/2026-10/graphql.json", 200, "", `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}`, refused(0)},
		{"Shopify's partners", "https://partners.shopify.com/1/api/2026-10/graphql.json", 200, "", `{"errors":[{"message":"Too many requests","extensions":{"code":"429"}}]}`, refused(0)},
		{"a wait in GraphQL's extensions", graphQL, 200, "", `{"errors":[{"message":"x","extensions":{"code":"RATE_LIMITED","retryAfter":17}}]}`, refused(17 * s)},
		{"a wait in GraphQL's words", graphQL, 200, "", `{"errors":[{"message":"Try again in 17 seconds","extensions":{"code":"TOO_MANY_REQUESTS"}}]}`, refused(17 * s)},
		{"GraphQL, a wait in the data", graphQL, 200, "", `{"data":{"job":{"retryAfter":17,"code":"throttled"}}}`, Reply{}},
		{"GraphQL, a number in the data", graphQL, 200, "", `{"data":{"area":{"code":429}}}`, Reply{}},
		{"Etherscan", "https://api.etherscan.io/v2/api", 200, "", `{"status":"0","message":"NOTOK","result":"Max rate limit reached, please use API Key for higher rate limit"}`, refused(0)},
		{"Alpha Vantage", "https://www.alphavantage.co/query", 200, "", `{"Note":"Thank you for using Alpha Vantage! Our standard API call frequency is 5 calls per minute and 500 calls per day."}`, refused(0)},
		{"Instagram", "https://graph.instagram.com/me", 400, "", `{"error":{"message":"Application request limit reached","type":"OAuthException","code":4}}`, refused(0)},
		{"Facebook, an account", "https://graph.facebook.com/v20.0/act_1", 400, "", `{"error":{"message":"(#80004) There have been too many calls to this ad-account.","code":80004}}`, refused(0)},
		{"Facebook, as 403", "https://graph.facebook.com/v20.0/me", 403, "", `{"error":{"message":"(#4) Application request limit reached","code":4}}`, refused(0)},
		{"Bybit", "https://api.bybit.com/v5/order", 200, "", `{"retCode":10006,"retMsg":"Too many visits!"}`, refused(0)},
		// What no retry mends.
		{"HubSpot's day", any, 429, "", `{"status":"error","message":"You have reached your daily limit.","errorType":"RATE_LIMIT","policyName":"DAILY"}`, Reply{Refused: true, Final: true}},
		{"HubSpot's ten seconds", any, 429, "", `{"status":"error","message":"x","errorType":"RATE_LIMIT","policyName":"TEN_SECONDLY_ROLLING"}`, refused(0)},
		{"Google's ErrorInfo, a day", any, 429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"DefaultRequestsPerDayPerProject"}}]}}`, Reply{Refused: true, Final: true}},
		{"Google's ErrorInfo, a minute", any, 429, "", `{"error":{"code":429,"details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"DefaultRequestsPerMinutePerProject"}}]}}`, refused(0)},
		{"Anthropic, behind a gateway", any, 429, "anthropic-ratelimit-requests-limit: 50", `{"type":"error","error":{"type":"rate_limit_error"}}`, Reply{Refused: true, Final: true}},
		{"Anthropic's words at another's", any, 429, "", `{"type":"error","error":{"type":"rate_limit_error"}}`, refused(0)},
		{"Anthropic, used up until then", "https://api.anthropic.com/v1/messages", 429, "anthropic-ratelimit-unified-reset: 1795262580", `{"type":"error","error":{"type":"rate_limit_error"}}`, refused(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{"Content-Type": {"application/json"}}
			if c.lines != "" {
				for name, v := range headers(strings.Split(c.lines, "\n")...) {
					h[name] = v
				}
			}
			h.Set("Date", cmp.Or(h.Get("Date"), "Sat, 21 Nov 2026 12:00:00 GMT"))
			r := &http.Response{StatusCode: c.status, Header: h, Body: io.NopCloser(strings.NewReader(c.body))}
			r.Request = httptest.NewRequest(http.MethodPost, c.url, nil)
			s := Read(r, received)
			require.Equal(t, c.want, Reply{Refused: s.Refused, Final: s.Final, NotRate: s.NotRate, After: s.After})
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(body), "the caller reads it, too")
		})
	}
}

// How other servers say what is left, and until when.
func TestQuotaOfOthers(t *testing.T) {
	stop := func(d time.Duration) hints { return hints{stop: d} }
	for _, c := range []struct {
		name, lines string
		want        hints
	}{
		{"a reset in ISO 8601", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-21T12:00:30.5Z", stop(30500 * time.Millisecond)},
		{"with an offset", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-21T13:00:30+0100", stop(30 * time.Second)},
		{"without a zone", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-21T12:00:30", stop(30 * time.Second)},
		{"as databases write it", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-21 12:00:30", stop(30 * time.Second)},
		{"microseconds", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262460000000", stop(time.Minute)},
		{"with a fraction", "X-RateLimit-Remaining: 0.0\nX-RateLimit-Reset: 60.0", stop(time.Minute)},
		{"Brave: a second and a month", "X-RateLimit-Limit: 1, 15000\nX-RateLimit-Remaining: 1, 0\nX-RateLimit-Reset: 1, 86400", stop(24 * time.Hour)},
		{"Brave: nothing for a second", "X-RateLimit-Limit: 1, 15000\nX-RateLimit-Remaining: 0, 14999\nX-RateLimit-Reset: 3, 1419704", stop(3 * time.Second)},
		{"Envoy", "X-RateLimit-Limit: 10, 10;w=1;burst=2, 100;w=60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 30", stop(30 * time.Second)},
		{"Imgur", "X-RateLimit-UserRemaining: 0\nX-RateLimit-UserReset: 1795262460\nX-RateLimit-ClientRemaining: 900", stop(time.Minute)},
		{"Cerebras' day", "x-ratelimit-limit-requests-day: 14400\nx-ratelimit-remaining-requests-day: 0\nx-ratelimit-reset-requests-day: 3600.5", stop(3600500 * time.Millisecond)},
		{"draft 11: a key of its own", `RateLimit: "a b, c";r=0;t=30;pk=:YWJj:`, stop(30 * time.Second)},
		{"draft 11: a quoted comma", `RateLimit-Policy: "a, b";q=120;w=60`, hints{rate: 2}},
		{"draft 11: a quote in a name", `RateLimit: "a\"b";r=0;t=30`, stop(30 * time.Second)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got hints
			for _, l := range read(200, headers(strings.Split(c.lines, "\n")...)).Limits {
				if got.stop = max(got.stop, l.Stop); l.Stop == 0 && l.Rate > 0 && c.want.rate > 0 {
					got.rate = l.Rate
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
