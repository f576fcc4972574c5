package outbound

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// Responses as their providers' documents have them, at 12:00:00 on 2026-11-21, 1795262400; and
// when the next call is permitted after that, to the millisecond. Those of research/llm.md are
// among them.
func TestProviders(t *testing.T) {
	const never = -1
	for _, c := range []struct {
		provider string
		status   int
		lines    string
		body     string
		want     time.Duration // until the next attempt; never: none would mend it
	}{
		{"GitHub, primary", 403, "X-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262460",
			`{"message":"API rate limit exceeded for user ID 1."}`, time.Minute},
		{"GitHub, primary, as 429", 429, "X-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262460", `{}`, time.Minute},
		{"GitHub, the last call before the primary", 200, "X-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262460", `{}`, time.Minute},
		{"GitHub, secondary", 403, "Retry-After: 30\nX-RateLimit-Remaining: 4990\nX-RateLimit-Reset: 1795265000",
			`{"message":"You have exceeded a secondary rate limit."}`, 30 * time.Second},
		{"GitHub, secondary, no Retry-After", 403, "X-RateLimit-Remaining: 4990\nX-RateLimit-Reset: 1795265000",
			`{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`, time.Minute},
		{"GitHub, secondary, only a reset", 403, "X-RateLimit-Reset: 1795262445", ``, 45 * time.Second},
		{"GitLab", 429, "RateLimit-Limit: 60\nRateLimit-Remaining: 0\nRateLimit-Reset: 1795262421\nRetry-After: 21", `Retry later`, 21 * time.Second},
		{"OpenAI", 429, "retry-after: 1\nretry-after-ms: 640\nx-ratelimit-limit-requests: 500\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 120ms",
			`{"error":{"type":"requests","code":"rate_limit_exceeded"}}`, 640 * time.Millisecond},
		{"OpenAI, no Retry-After", 429, "x-ratelimit-limit-requests: 500\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 60s",
			`{"error":{"code":"rate_limit_exceeded"}}`, 120 * time.Millisecond},
		{"OpenAI, the last call", 200, "x-ratelimit-limit-requests: 5000\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 60s", `{}`, 12 * time.Millisecond},
		{"OpenAI, no tokens left", 200, "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 30s", `{}`, 100 * time.Millisecond},
		{"api.openai.com, no money left", 429, "", `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`, never},
		{"another that speaks as OpenAI, a limit a minute", 429, "", `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`, time.Second},
		{"OpenAI, a request too large", 429, "", `{"error":{"message":"Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000.",` +
			`"type":"tokens","code":"rate_limit_exceeded"}}`, never},
		{"OpenAI, x-should-retry", 429, "retry-after: 1\nx-should-retry: false", `{}`, never},
		{"Azure OpenAI", 429, "retry-after: 7\nretry-after-ms: 6543\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 7", `{}`, 6543 * time.Millisecond},
		{"Azure OpenAI, unknown", 200, "x-ratelimit-limit-requests: -1\nx-ratelimit-remaining-requests: -1\nx-ratelimit-reset-requests: 0", `{}`, 0},
		{"Anthropic", 429, "retry-after: 12\nanthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-11-21T12:01:00Z",
			`{"type":"error","error":{"type":"rate_limit_error"}}`, 12 * time.Second},
		{"Anthropic, the last call", 200, "anthropic-ratelimit-requests-limit: 5000\nanthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-11-21T12:01:00Z", `{}`, 12 * time.Millisecond},
		{"Anthropic, the limit of spending", 429, "anthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 49\nanthropic-ratelimit-requests-reset: 2026-11-21T12:00:01Z",
			`{"type":"error","error":{"type":"rate_limit_error"}}`, never},
		{"Anthropic, overloaded", 529, "", `{"type":"error","error":{"type":"overloaded_error"}}`, time.Second},
		{"Anthropic, overloaded, Retry-After", 529, "Retry-After: 5", `{"type":"error","error":{"type":"overloaded_error"}}`, 5 * time.Second},
		{"Gemini", 429, "", `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"11.337s"}]}}`, 11337 * time.Millisecond},
		{"Gemini, a stream", 429, "", `[{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"11s"}]}}]`, 11 * time.Second},
		{"Gemini, the day's quota", 429, "", `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"11s"}]}}`, never},
		{"Bedrock", 429, "x-amzn-ErrorType: ThrottlingException", `{"message":"Too many requests, please wait before trying again."}`, time.Second},
		{"Slack", 429, "Retry-After: 30", `{"ok":false,"error":"ratelimited"}`, 30 * time.Second},
		{"Discord", 429, "Retry-After: 65\nX-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262464.57\nX-RateLimit-Reset-After: 64.57\nX-RateLimit-Bucket: abcd",
			`{"message":"You are being rate limited.","retry_after":64.57,"global":false}`, 64570 * time.Millisecond},
		{"Discord, the last call", 200, "X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262401.25\nX-RateLimit-Reset-After: 1.25", `{}`, 1250 * time.Millisecond},
		{"Telegram", 429, "", `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 5","parameters":{"retry_after":5}}`, 5 * time.Second},
		{"Shopify, REST", 429, "Retry-After: 2.0\nX-Shopify-Shop-Api-Call-Limit: 40/40", `{"errors":"Exceeded 2 calls per second for api client."}`, 2 * time.Second},
		{"Shopify, GraphQL", 200, "X-ShopId: 1", `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":` +
			`{"requestedQueryCost":101,"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":13,"restoreRate":50.0}}}}`, 1760 * time.Millisecond},
		{"Shopify, GraphQL, too dear", 200, "X-ShopId: 1", `{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":` +
			`{"requestedQueryCost":1001,"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":13,"restoreRate":50.0}}}}`, never},
		{"Shopify, GraphQL, fine", 200, "X-ShopId: 1", `{"data":{},"extensions":{"cost":{"requestedQueryCost":101,"throttleStatus":{"currentlyAvailable":13}}}}`, 0},
		{"Stripe", 429, "Stripe-Rate-Limited-Reason: global-rate", `{"error":{"code":"rate_limit"}}`, time.Second},
		{"Stripe, which will not have it again", 429, "Stripe-Should-Retry: false", `{"error":{"code":"rate_limit"}}`, never},
		{"Jira", 429, "RateLimit-Reason: jira-quota-tenant-based\nX-RateLimit-Limit: 100\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-21T12:03Z", ``, 3 * time.Minute},
		{"Jira, Retry-After", 429, "RateLimit-Reason: jira-burst-based\nRetry-After: 4\nX-RateLimit-Reset: 2026-11-21T12:00Z", ``, 4 * time.Second},
		{"Jira, a reset without seconds", 429, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2026-11-21T12:01Z", ``, time.Minute},
		{"Atlassian Data Center", 429, "X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 0\nX-RateLimit-FillRate: 10\nX-RateLimit-Interval-Seconds: 2", ``, 200 * time.Millisecond},
		{"Atlassian Data Center, the last call", 200, "X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 0\nX-RateLimit-FillRate: 10\nX-RateLimit-Interval-Seconds: 2", `{}`, 200 * time.Millisecond},
		{"Okta", 429, "X-Rate-Limit-Limit: 600\nX-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 1795262447", `{"errorCode":"E0000047"}`, 47 * time.Second},
		{"Okta, too many at a time", 429, "X-Rate-Limit-Limit: 0\nX-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 1795262460", `{"errorCode":"E0000047"}`, time.Second},
		{"Stripe, a lock", 429, "", `{"error":{"code":"lock_timeout","type":"invalid_request_error"}}`, time.Second},
		{"OpenRouter, another's headers in the body", 429, "", `{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":` +
			`{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795262442000"},"provider_name":null}},"user_id":"user_x"}`, 42 * time.Second},
		{"Matrix", 429, "", `{"errcode":"M_LIMIT_EXCEEDED","error":"Too Many Requests","retry_after_ms":2345}`, 2345 * time.Millisecond},
		{"X-RateLimit-Retry-After", 429, "X-RateLimit-Retry-After: 9", ``, 9 * time.Second},
		{"Bucket4j", 429, "X-Rate-Limit-Retry-After-Seconds: 9", ``, 9 * time.Second},
		{"AWS, milliseconds", 429, "X-Amz-Retry-After: 1500", ``, 1500 * time.Millisecond},
		{"Groq, in words", 429, "", `{"error":{"message":"Rate limit reached for model x on tokens per minute (TPM): Limit 6000, Used 5000, Requested 1500. Please try again in 7.66s. Visit","code":"rate_limit_exceeded"}}`, 7660 * time.Millisecond},
		{"Azure OpenAI, in words", 429, "", `{"error":{"code":"429","message":"Requests have exceeded call rate limit of your current pricing tier. Please retry after 26 seconds."}}`, 26 * time.Second},
		{"a subscription to Claude", 429, "anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-reset: 1795262580", `{"type":"error","error":{"type":"rate_limit_error"}}`, 3 * time.Minute},
		{"a subscription to Claude, not used up", 529, "anthropic-ratelimit-unified-status: allowed\nanthropic-ratelimit-unified-reset: 1795262580", `{"type":"error","error":{"type":"overloaded_error"}}`, time.Second},
		{"Binance, a ban", 418, "Retry-After: 90", `{"code":-1003,"msg":"Way too many requests; IP banned."}`, 90 * time.Second},
		{"Twilio", 429, "", `{"code":20429,"message":"Too Many Requests","status":429}`, time.Second},
		{"Zendesk", 429, "Retry-After: 93", `{"error":"APIRateLimitExceeded"}`, 93 * time.Second},
		{"Zendesk, the last call", 200, "ratelimit-limit: 700\nratelimit-remaining: 0\nratelimit-reset: 41", `{}`, 41 * time.Second},
		{"X", 429, "x-rate-limit-limit: 15\nx-rate-limit-remaining: 0\nx-rate-limit-reset: 1795262460", `{"title":"Too Many Requests"}`, time.Minute},
		{"any, behind a gateway that is full", 503, "", ``, time.Second},
		{"any, with a malformed wait", 429, "Retry-After: 999999999", ``, time.Second},
	} {
		t.Run(c.provider, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pass(time.Until(received))
				var times []time.Duration
				base := tripper(func(r *http.Request) (*http.Response, error) {
					times = append(times, time.Since(received))
					h, body, status := headers(strings.Split(c.lines, "\n")...), c.body, c.status
					if len(times) > 1 {
						h, body, status = http.Header{}, "{}", 200
					}
					h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
					return &http.Response{Status: fmt.Sprint(status), StatusCode: status, Header: h, Request: r, Body: io.NopCloser(strings.NewReader(body))}, nil
				})
				fast := func() *reserve.Limiter { return reserve.Must(pace.NewBursty(1e9)) }
				transport := reserve.Must(New(base, fast(), WithRetries(1), WithLimit(Limit{Name: "tokens", Limiter: fast(), Cost: func(*http.Request) int { return 100 }})))
				client := &http.Client{Transport: transport}
				host, _, known := strings.Cut(c.provider, ",")
				if !known || !strings.Contains(host, ".") {
					host = "shop.example.com"
				}
				url := "https://" + host + "/admin/api/2026-10/graphql.json"
				response, err := client.Get(url)
				require.NoError(t, err)
				got, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				response.Body.Close()
				if len(times) == 1 { // it was not sent again: this is the answer
					require.Equal(t, c.body, string(got))
				}
				if c.want == never {
					require.Len(t, times, 1)
					return
				}
				if c.status == 200 && len(times) == 1 {
					_, err = get(client, url)
					require.NoError(t, err)
				}
				require.Len(t, times, 2)
				require.InDelta(t, c.want, times[1], float64(time.Millisecond))
			})
		})
	}
}
