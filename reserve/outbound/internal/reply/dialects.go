package reply

import (
	"net/http"
	"strings"
	"time"
)

// Dialects are the known dialects, in the order of trying. Reset-After comes before Reset: no wrong clock changes it.
var Dialects = expanded([]Dialect{
	{Name: "OpenAI, Azure OpenAI", Limit: "X-Ratelimit-Limit-*", Remaining: "X-Ratelimit-Remaining-*", Reset: "X-Ratelimit-Reset-*",
		Of: []string{"requests", "tokens"}, Bucket: true, Body: quotaIsUsedUp},
	{Name: "Anthropic", Limit: "Anthropic-Ratelimit-*-Limit", Remaining: "Anthropic-Ratelimit-*-Remaining", Reset: "Anthropic-Ratelimit-*-Reset",
		Of: []string{"requests", "tokens", "input-tokens", "output-tokens"}, Bucket: true, Body: spendCap},
	{Name: "Atlassian Data Center", Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining",
		Fill: "X-Ratelimit-Fillrate", Interval: "X-Ratelimit-Interval-Seconds", Bucket: true},
	{Name: "Discord", Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset-After", Body: retryAfterInBody,
		Key: "X-Ratelimit-Bucket", each: true, Whole: "X-Ratelimit-Scope"},
	{Name: "Discord, without a scope", Whole: "X-Ratelimit-Global"},
	{Name: "Jira", Reason: "Ratelimit-Reason"},
	{Name: "Stripe", Reason: "Stripe-Rate-Limited-Reason"},
	{Name: "GitHub and many others", Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset", Body: secondaryLimit,
		Key: "X-Ratelimit-Resource"},
	{Name: "the draft's versions 0 to 6, GitLab, Zendesk", Limit: "Ratelimit-Limit", Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset"},
	{Name: "Okta, X", Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset"},
	{Name: "Google", Body: retryInfo},
	{Name: "AWS", Signs: []Sign{
		{Status: 400, Header: "X-Amzn-Errortype", Value: "Throttl"},
		{Status: 400, Header: "X-Amzn-Errortype", Value: "TooManyRequests"},
		{Status: 400, Header: "X-Amzn-Errortype", Value: "RequestLimitExceeded"},
		{Status: 400, Header: "X-Amzn-Errortype", Value: "ProvisionedThroughputExceeded"},
		{Status: 400, Header: "X-Amzn-Requestid", Body: "ThrottlingException"},
		{Status: 400, Header: "X-Amzn-Requestid", Body: "ProvisionedThroughputExceededException"},
	}},
	{Name: "MediaWiki", Signs: []Sign{
		{Status: 200, Header: "Mediawiki-Api-Error", Value: "maxlag"},
		{Status: 200, Header: "Mediawiki-Api-Error", Value: "ratelimited"},
	}},
	{Name: "Salesforce", Signs: []Sign{
		{Status: 403, Body: "TotalRequests Limit exceeded", Final: true},
		{Status: 403, Body: `"REQUEST_LIMIT_EXCEEDED"`},
	}},
	{Name: "SEC EDGAR", Signs: []Sign{{Status: 403, Body: "Request Rate Threshold Exceeded"}}},
	{Name: "Zendesk's exports", Read: zendesk},
	{Name: "Shopify REST", Refill: 2, Read: shopify},
	{Name: "Shopify GraphQL", Body: throttleStatus, Throttles: isShopifyGraphQL},
}...)

// zendesk reads the limit of exports: "total=10; remaining=0; resets=57".
func zendesk(h http.Header) []Left {
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
	return []Left{{Of: "incremental-exports", Permits: of["remaining"], Limit: of["total"], Reset: times(of["resets"], time.Second)}}
}

// shopify reads "32/40": a bucket of 40, of which 32 are used.
func shopify(h http.Header) []Left {
	used, size, ok := strings.Cut(get(h, "X-Shopify-Shop-Api-Call-Limit"), "/")
	u, uOK := number(used)
	n, nOK := number(size)
	if !ok || !uOK || !nOK {
		return nil
	}
	return []Left{{Permits: max(0, n-u), Limit: n}}
}
