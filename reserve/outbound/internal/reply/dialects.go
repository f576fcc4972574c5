package reply

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// known reads the known dialects, in the order of trying. Reset-After comes before Reset: no wrong clock changes it.
var known = newReader(expanded([]Dialect{
	{Name: "OpenAI, Azure OpenAI",
		Limit: "X-Ratelimit-Limit-*", Remaining: "X-Ratelimit-Remaining-*", Reset: "X-Ratelimit-Reset-*",
		Of: []string{"requests", "tokens"}, Bucket: true, Signs: []Sign{
			{Host: "openai.com", Body: `"insufficient_quota"`, Final: true}, {Body: `"Request too large`, Final: true},
		}},
	{Name: "Anthropic's subscriptions", Read: subscription, needs: "Anthropic-Ratelimit-Unified-Reset"},
	{Name: "Anthropic",
		Limit: "Anthropic-Ratelimit-*-Limit", Remaining: "Anthropic-Ratelimit-*-Remaining",
		Reset: "Anthropic-Ratelimit-*-Reset",
		Of:    []string{"requests", "tokens", "input-tokens", "output-tokens"}, Bucket: true, Signs: []Sign{ // spent
			{Status: 429, Host: "anthropic.com", Body: `"rate_limit_error"`, untold: true, Final: true},
			{Status: 429, Header: "Anthropic-Ratelimit-Requests-Limit", Body: `"rate_limit_error"`, untold: true, Final: true},
		}},
	{Name: "Atlassian Data Center", Read: atlassian, needs: "X-Ratelimit-Fillrate"},
	{Name: "Discord",
		Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset-After",
		Key: "X-Ratelimit-Bucket", each: true, Whole: "X-Ratelimit-Scope"},
	{Name: "Discord, without a scope", Whole: "X-Ratelimit-Global"},
	{Name: "Jira", Reason: "Ratelimit-Reason"},
	{Name: "Stripe", Reason: "Stripe-Rate-Limited-Reason", Signs: []Sign{
		{Status: 429, Body: `"lock_timeout"`, NotRate: true},
		{Status: 429, Header: "Stripe-Rate-Limited-Reason", Value: "concurrency", NotRate: true},
	}},
	{Name: "GitHub and many others",
		Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset",
		Key: "X-Ratelimit-Resource", Signs: []Sign{ // the documentation says a minute
			{Body: "secondary rate limit", After: time.Minute}, {Body: "secondary-rate-limits", After: time.Minute},
			{Body: "abuse detection mechanism", After: time.Minute}, // before 2021
			{Status: 422, Host: "api.github.com", Body: "was submitted too quickly", After: time.Minute},
		}},
	{Name: "the draft's versions 0 to 6, GitLab, Zendesk",
		Limit: "Ratelimit-Limit", Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset"},
	{Name: "X's days", Limit: "X-*-24hour-Limit", Remaining: "X-*-24hour-Remaining", Reset: "X-*-24hour-Reset",
		Of: []string{"app-limit", "user-limit"}},
	{Name: "Okta, X", Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset"},
	{
		Name:  "Imgur",
		Limit: "X-Ratelimit-Userlimit", Remaining: "X-Ratelimit-Userremaining", Reset: "X-Ratelimit-Userreset",
	},
	{Name: "Cerebras", Limit: "X-Ratelimit-Limit-*-Day", Remaining: "X-Ratelimit-Remaining-*-Day",
		Reset: "X-Ratelimit-Reset-*-Day", Of: []string{"requests", "tokens"}},
	{Name: "Linear", Limit: "X-Ratelimit-*-Limit", Remaining: "X-Ratelimit-*-Remaining", Reset: "X-Ratelimit-*-Reset",
		Of: []string{"requests", "complexity", "perhour", "perday"}}, // Tumblr's are two of them
	{Name: "Google", Signs: []Sign{{Host: "googleapis.com", Body: `"quotaExceeded"`, Final: true}}},
	{Name: "a day or a month of Salesforce, X, Bedrock, LinkedIn, Airtable, Cohere", Signs: []Sign{
		{Status: 403, Body: "TotalRequests Limit exceeded", Final: true}, {Status: 429, Body: `"UsageCap`, Final: true},
		{Status: 429, Header: "X-Amzn-Requestid", Body: "tokens per day", Final: true},
		{Status: 429, Host: "linkedin.com", Body: " DAY limit", Final: true},
		{Status: 429, Host: "airtable.com", Body: "BILLING_LIMIT_EXCEEDED", Final: true},
		{Status: 429, Body: "a Trial key, which is limited to 1000 API calls", Final: true},
	}},
	{Name: "SEC EDGAR", Signs: []Sign{{Status: 403, Body: "Request Rate Threshold Exceeded", After: 10 * time.Minute}}},
	{Name: "Airtable", Signs: []Sign{{Status: 429, Body: `"RATE_LIMIT_REACHED"`, After: 30 * time.Second}}},
	{Name: "Zendesk's exports", Read: zendesk, needs: "Zendesk-Ratelimit-Incremental-Exports"},
	{Name: "Shopify REST", Refill: 2, Read: shopify, needs: "X-Shopify-Shop-Api-Call-Limit"},
	{Name: "Binance", Signs: []Sign{{Status: 418, Header: "Retry-After"}, {Status: 418, Body: `"code":-1003`}}},
	// RESOURCE_EXHAUSTED
	{Name: "gRPC, gRPC-Web", Signs: []Sign{{Status: 200, Header: "Grpc-Status", Value: "8", small: true}}},
	{Name: "Kraken", Signs: []Sign{{Status: 200, Host: "kraken.com", Body: "Temporary lockout", After: 15 * time.Minute}}},
	{Name: "Mashery", Signs: []Sign{{Status: 403, Header: "X-Mashery-Error-Code", Value: "DEVELOPER_OVER"}}},
	{Name: "ip-api.com", Remaining: "X-Rl", Reset: "X-Ttl"},
	{Name: "Mistral", Limit: "Ratelimitby*-Limit", Remaining: "Ratelimitby*-Remaining", Reset: "Ratelimitby*-Reset",
		Of: []string{"size"}},
	{Name: "other statuses", Signs: []Sign{{Status: 420}, {Status: 509}}},
	{Name: "a body", Body: readBody, Signs: slices.Concat(
		[]Sign{
			{Status: 200, Path: "/graphql", Header: "Content-Type", Value: "json", Body: "secondary rate limit",
				After: time.Minute, asks: true}, // GitHub
			{Status: 200, Path: "/graphql", Header: "Content-Type", Value: "json", asks: true},
			{Status: 400, Path: "/graphql", Header: "Content-Type", Value: "json", asks: true}, // Linear
			{Status: 200, Path: "/graphql.json", asks: true}, {Status: 200, Header: "Mediawiki-Api-Error", asks: true},
			{Status: 400, Header: "X-Amzn-Requestid", Body: "Rate exceeded"},
			{Status: 400, Header: "X-Amzn-Requestid", asks: true}, {Status: 400, Header: "X-Amzn-Errortype", asks: true},
			{Status: 200, Host: "alphavantage.co", Body: "call freq"}, {Status: 200, Host: "bybit.com", Body: `"retCode":10006`},
			{Status: 200, Host: "okx.com", Body: `"code":"50011"`}, {Status: 200, Host: "okx.com", Body: `"code":"50061"`},
			{Status: 200, Host: "qq.com", Body: `"errcode":45009`}, {Status: 200, Host: "qq.com", Body: `"errcode":45011`},
			{Status: 500, Host: "bitfinex.com", Body: `"ratelimit`},
		},
		each(Sign{Status: 200, Body: "rate limit reached"}, "etherscan.io", "bscscan.com", "polygonscan.com", "arbiscan.io"),
		each(Sign{Status: 400, Body: `"code":99991400`}, "feishu.cn", "larksuite.com"),
		each(Sign{Status: 200, asks: true}, "monday.com", "slack.com", "maps.googleapis.com", "api.kraken.com", "api.vk.com",
			"tencentcloudapi.com", "reddit.com", "audioscrobbler.com", "infura.io", "alchemy.com", "baidubce.com",
			"minimax.io"),
		each(Sign{Status: 400, asks: true}, "facebook.com", "instagram.com", "aliyuncs.com", "netsuite.com", "deribit.com"),
	)},
}))

// each returns a sign for each host. Where the body is asked, it is JSON.
func each(of Sign, hosts ...string) (signs []Sign) {
	if of.asks {
		of.Header, of.Value = "Content-Type", "json"
	}
	for _, of.Host = range hosts {
		signs = append(signs, of)
	}
	return signs
}

// subscription reads until when a subscription to Claude is used up.
func subscription(h http.Header, now time.Time) []Left {
	last, _, ok := untilThen(get(h, "Anthropic-Ratelimit-Unified-Reset"), clock{received: now})
	if !ok || get(h, "Anthropic-Ratelimit-Unified-Status") != "rejected" ||
		strings.HasPrefix(get(h, "Anthropic-Ratelimit-Unified-Overage-Status"), "allowed") {
		return nil
	}
	return []Left{{Reset: last}}
}

// atlassian reads a bucket that gets FillRate permits in each interval.
func atlassian(h http.Header, _ time.Time) []Left {
	left, leftOK := number(get(h, "X-Ratelimit-Remaining"))
	fill, _ := number(get(h, "X-Ratelimit-Fillrate"))
	interval, _ := number(get(h, "X-Ratelimit-Interval-Seconds"))
	if !leftOK || fill <= 0 || interval <= 0 {
		return nil
	}
	return []Left{{Permits: left, Rate: fill / interval}}
}

// zendesk reads the limit of exports: "total=10; remaining=0; resets=57".
func zendesk(h http.Header, _ time.Time) []Left {
	v := get(h, "Zendesk-Ratelimit-Incremental-Exports")
	l, resets := Left{Of: "incremental-exports"}, 0.
	if n, _ := fmt.Sscanf(v, "total=%f; remaining=%f; resets=%f", &l.Limit, &l.Permits, &resets); n < 2 {
		return nil
	}
	l.Reset = times(resets, time.Second)
	return []Left{l}
}

// shopify reads "32/40": a bucket of 40, of which 32 are used.
func shopify(h http.Header, _ time.Time) []Left {
	used, size, _ := strings.Cut(get(h, "X-Shopify-Shop-Api-Call-Limit"), "/")
	u, ok := number(used)
	n, sized := number(size)
	if !ok || !sized {
		return nil
	}
	return []Left{{Permits: max(0, n-u), Limit: n}}
}
