package reply

import (
	"net/http"
	"strings"
	"time"
)

// Dialects are the known dialects, in the order of trying. Reset-After comes before Reset: no wrong clock changes it.
var Dialects = expanded([]Dialect{
	{Name: "OpenAI, Azure OpenAI",
		Limit: "X-Ratelimit-Limit-*", Remaining: "X-Ratelimit-Remaining-*", Reset: "X-Ratelimit-Reset-*",
		Of: []string{"requests", "tokens"}, Bucket: true, Signs: []Sign{
			{Host: "openai.com", Body: `"insufficient_quota"`, Final: true},
			{Body: `"Request too large`, Final: true},
		}},
	{Name: "Anthropic's subscriptions", Read: subscription},
	{Name: "Anthropic",
		Limit: "Anthropic-Ratelimit-*-Limit", Remaining: "Anthropic-Ratelimit-*-Remaining",
		Reset: "Anthropic-Ratelimit-*-Reset",
		Of:    []string{"requests", "tokens", "input-tokens", "output-tokens"}, Bucket: true, Signs: []Sign{ // of a limit of spending; a gateway may have taken the time away
			{Status: 429, Host: "anthropic.com", Body: `"rate_limit_error"`, untold: true, Final: true},
			{Status: 429, Header: "Anthropic-Ratelimit-Requests-Limit", Body: `"rate_limit_error"`, untold: true, Final: true},
		}},
	{Name: "Atlassian Data Center", Read: atlassian},
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
			{Body: "secondary rate limit", After: time.Minute},
			{Body: "secondary-rate-limits", After: time.Minute},
		}},
	{Name: "the draft's versions 0 to 6, GitLab, Zendesk",
		Limit: "Ratelimit-Limit", Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset"},
	{Name: "Okta, X", Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset"},
	{Name: "Imgur", Limit: "X-Ratelimit-Userlimit", Remaining: "X-Ratelimit-Userremaining", Reset: "X-Ratelimit-Userreset"},
	{Name: "Cerebras", Limit: "X-Ratelimit-Limit-*-Day", Remaining: "X-Ratelimit-Remaining-*-Day",
		Reset: "X-Ratelimit-Reset-*-Day", Of: []string{"requests", "tokens"}},
	{Name: "Linear", Limit: "X-Ratelimit-*-Limit", Remaining: "X-Ratelimit-*-Remaining", Reset: "X-Ratelimit-*-Reset",
		Of: []string{"requests", "complexity"}},
	{Name: "Google", Signs: []Sign{{Host: "googleapis.com", Body: `"quotaExceeded"`, Final: true}}},
	{Name: "AWS", Signs: []Sign{
		{Status: 400, Header: "X-Amzn-Errortype", Value: "Throttl"},
		{Status: 400, Header: "X-Amzn-Errortype", Value: "TooManyRequests"},
		{Status: 400, Header: "X-Amzn-Errortype", Value: "RequestLimitExceeded"},
		{Status: 400, Header: "X-Amzn-Errortype", Value: "ProvisionedThroughputExceeded"},
		{Status: 400, Header: "X-Amzn-Requestid", Body: "ThrottlingException"},
		{Status: 400, Header: "X-Amzn-Requestid", Body: "ProvisionedThroughputExceededException"},
		{Status: 400, Header: "X-Amzn-Requestid", Body: "<Code>Throttling"},
	}},
	{Name: "MediaWiki", Signs: []Sign{
		{Status: 200, Header: "Mediawiki-Api-Error", Value: "maxlag"},
		{Status: 200, Header: "Mediawiki-Api-Error", Value: "ratelimited"},
	}},
	{Name: "Salesforce", Signs: []Sign{
		{Status: 403, Body: "TotalRequests Limit exceeded", Final: true},
		{Status: 403, Body: "ConcurrentRequests Limit exceeded", NotRate: true},
		{Status: 403, Body: "ConcurrentPerOrgLongTxn Limit exceeded", NotRate: true},
		{Status: 403, Body: `"REQUEST_LIMIT_EXCEEDED"`},
	}},
	{Name: "SEC EDGAR", Signs: []Sign{{Status: 403, Body: "Request Rate Threshold Exceeded", After: 10 * time.Minute}}},
	{Name: "Airtable", Signs: []Sign{{Status: 429, Body: `"RATE_LIMIT_REACHED"`, After: 30 * time.Second}}},
	{Name: "Zendesk's exports", Read: zendesk},
	{Name: "Shopify REST", Refill: 2, Read: shopify},
	{Name: "Binance", Signs: []Sign{{Status: 418, Header: "Retry-After"}}},
	{Name: "Facebook, Instagram", Signs: facebook()},
	{Name: "gRPC, gRPC-Web", Signs: []Sign{{Status: 200, Header: "Grpc-Status", Value: "8", small: true}}}, // RESOURCE_EXHAUSTED
	{Name: "Etherscan", Signs: []Sign{{Status: 200, Host: "etherscan.io", Body: "rate limit reached"}}},
	{Name: "Alpha Vantage", Signs: []Sign{{Status: 200, Host: "alphavantage.co", Body: "call frequency"}}},
	{Name: "Bybit", Signs: []Sign{{Status: 200, Host: "bybit.com", Body: `"retCode":10006`}}},
	{Name: "other statuses", Signs: []Sign{{Status: 420}, {Status: 509}}},
	{Name: "a body", Body: readBody, Signs: []Sign{
		{Status: 200, Path: "/graphql", Header: "Content-Type", Value: "json", asks: true}, // GitHub
		{Status: 400, Path: "/graphql", Header: "Content-Type", Value: "json", asks: true}, // Linear
		{Status: 200, Path: "/graphql.json", asks: true},                                   // Shopify
		{Status: 200, Host: "monday.com", asks: true},
		{Status: 200, Host: "slack.com", Header: "Content-Type", Value: "json", asks: true},
		{Status: 200, Host: "maps.googleapis.com", Header: "Content-Type", Value: "json", asks: true},
		{Status: 200, Host: "api.kraken.com", asks: true},
		{Status: 200, Host: "api.vk.com", asks: true},
	}},
}...)

func facebook() (signs []Sign) {
	for _, status := range []int{400, 403} {
		for _, host := range []string{"facebook.com", "instagram.com"} {
			for _, text := range []string{"request limit reached", "exceeded the rate limit", "too many calls"} {
				signs = append(signs, Sign{Status: status, Host: host, Body: text})
			}
		}
	}
	return signs
}

// subscription reads until when a subscription to Claude is used up.
func subscription(h http.Header, now time.Time) []Left {
	last, _, ok := untilThen(get(h, "Anthropic-Ratelimit-Unified-Reset"), clock{received: now})
	if !ok || get(h, "Anthropic-Ratelimit-Unified-Status") != "rejected" {
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
	if v == "" {
		return nil
	}
	of := map[string]float64{}
	for _, part := range strings.Split(v, ";") {
		name, n, _ := strings.Cut(strings.TrimSpace(part), "=")
		if f, ok := number(n); ok {
			of[name] = f
		}
	}
	if _, ok := of["remaining"]; !ok {
		return nil
	}
	return []Left{{
		Of: "incremental-exports", Permits: of["remaining"], Limit: of["total"], Reset: times(of["resets"], time.Second),
	}}
}

// shopify reads "32/40": a bucket of 40, of which 32 are used.
func shopify(h http.Header, _ time.Time) []Left {
	used, size, ok := strings.Cut(get(h, "X-Shopify-Shop-Api-Call-Limit"), "/")
	u, uOK := number(used)
	n, nOK := number(size)
	if !ok || !uOK || !nOK {
		return nil
	}
	return []Left{{Permits: max(0, n-u), Limit: n}}
}
