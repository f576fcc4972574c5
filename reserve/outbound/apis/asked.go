package apis

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve/outbound"
)

// asked are the APIs whose limits need numbers of the caller's, with those of the documentation's examples.
func asked() []api {
	return []api{shopify(2, 40), shopifyGraphQL(50, 1000), jira(65000), hubSpot(100, 10*time.Second), zendesk(400),
		okta(600, 75), twilio(10), salesforce(100000, 25), google(600), asana(150), riot(20, 100)}
}

// Shopify returns an option with the limits of Shopify's REST Admin API for a shop: 2 requests a second and 40 at once,
// of higher plans more.
func Shopify(perSecond, bucket float64) outbound.Option { return shopify(perSecond, bucket).option() }

func shopify(perSecond, bucket float64) api {
	return api{
		API: API{
			Name: "Shopify", Call: "apis.Shopify(2, 40)", Hosts: []string{"myshopify.com"},
			Says:   "REST: 40, and 2 a second, for an app and a shop",
			Source: "https://shopify.dev/docs/api/usage/limits", Checked: day(2026, time.November, 28),
		},
		credential: []string{"X-Shopify-Access-Token"}, perHost: true,
		given:  []number{{"perSecond", perSecond}, {"bucket", bucket}},
		limits: []limit{{n: bucket, refill: perSecond, not: []string{"/admin/api/*/graphql.json", "/api/*/graphql.json"}}},
	}
}

// ShopifyGraphQL returns an option with the limits of Shopify's GraphQL Admin API for a shop: points a second and at
// once, by the plan, such as 50 and 1000. What a query costs is known by its response; until then it is as the dearest
// of the last ones, at first 50 points.
func ShopifyGraphQL(pointsPerSecond, bucket float64) outbound.Option {
	return shopifyGraphQL(pointsPerSecond, bucket).option()
}

func shopifyGraphQL(pointsPerSecond, bucket float64) api {
	return api{
		API: API{
			Name: "Shopify GraphQL", Call: "apis.ShopifyGraphQL(50, 1000)", Hosts: []string{"myshopify.com"},
			Says: "points a second for an app and a shop, by the plan (100 to 2000), and at once; " +
				"responses say what a query cost",
			Source: "https://shopify.dev/docs/api/usage/limits", Checked: day(2026, time.November, 28),
		},
		credential: []string{"X-Shopify-Access-Token"}, perHost: true,
		given: []number{{"pointsPerSecond", pointsPerSecond}, {"bucket", bucket}},
		limits: []limit{{n: bucket, refill: pointsPerSecond, paths: []string{"/admin/api/*/graphql.json"},
			asked: "requestedQueryCost", charged: "actualQueryCost", guess: 50}},
	}
}

// Jira returns an option with the limits of Jira Cloud's API: an app's points an hour (65,000), 50 requests a second,
// and 20 writes of an issue in 2 s. A request for data costs 2 points, others 1.
func Jira(pointsPerHour int) outbound.Option { return jira(pointsPerHour).option() }

func jira(pointsPerHour int) api {
	issue := []string{"/rest/api/*/issue/{}/**", "/ex/jira/*/rest/api/*/issue/{}/**"}
	return api{
		API: API{
			Name: "Jira", Call: "apis.Jira(65000)", Hosts: []string{"atlassian.net", "api.atlassian.com"},
			Says: "an app's points an hour; an endpoint's requests a second, by the method: here 100 and 50 a second for all; " +
				"20 writes of an issue in 2 s, 100 in 30 s",
			Source:  "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/",
			Checked: day(2026, time.November, 28),
		},
		perHost: true, longest: 61 * time.Minute,
		given: []number{{"pointsPerHour", float64(pointsPerHour)}},
		limits: []limit{
			{name: "jira-quota-tenant-based", n: float64(pointsPerHour), per: time.Hour, calendar: true,
				cost: func(r *http.Request) int {
					if r.Method == http.MethodGet || r.Method == "" {
						return 2
					}
					return 1
				}},
			{
				name: "writes of an issue in 30 s", n: 100, per: 30 * time.Second, methods: "PUT POST DELETE",
				paths: issue, each: in(issue...),
			},
			{
				name: "jira-per-issue-on-write", n: 20, per: 2 * time.Second, methods: "PUT POST DELETE",
				paths: issue, each: in(issue...),
			},
			{name: "jira-burst-based", n: 100, refill: 50},
		},
	}
}

// HubSpot returns an option with the limits of HubSpot's API for an app and an account: so many calls in a time, such
// as 100 in 10 s.
func HubSpot(calls int, in time.Duration) outbound.Option { return hubSpot(calls, in).option() }

func hubSpot(calls int, in time.Duration) api {
	return api{
		API: API{
			Name: "HubSpot", Call: "apis.HubSpot(100, 10*time.Second)", Hosts: []string{"api.hubapi.com", "api.hubspot.com"},
			Says:   "100 to 190 in 10 s for an app and an account; searches 5 a second; a day's calls",
			Source: "https://developers.hubspot.com/docs/api/usage-details", Checked: day(2026, time.November, 28),
		},
		given: []number{{"calls", float64(calls)}, {"in", float64(in)}},
		dialect: outbound.Dialect{
			Name: "HubSpot", Limit: "X-HubSpot-RateLimit-Max", Remaining: "X-HubSpot-RateLimit-Remaining", Every: in,
			Signs: []outbound.Sign{{Status: http.StatusTooManyRequests, Body: `"DAILY"`, Final: true}},
		},
		limits: []limit{
			{name: "search", n: 5, per: time.Second, methods: "POST", paths: []string{"/crm/*/objects/*/search"}},
			{n: float64(calls), per: in},
		},
	}
}

// Zendesk returns an option with the limits of Zendesk's API for an account: requests a minute by the plan, 200 to
// 2500.
func Zendesk(perMinute int) outbound.Option { return zendesk(perMinute).option() }

func zendesk(perMinute int) api {
	const ticket = "/api/v2/tickets/{}"
	return api{
		API: API{
			Name: "Zendesk", Call: "apis.Zendesk(400)", Hosts: []string{"zendesk.com"},
			Says: "200 to 2500 a minute by the plan; incremental exports 10 a minute; 100 updates of tickets, " +
				"of one 30 in 10 minutes",
			Source:  "https://developer.zendesk.com/api-reference/introduction/rate-limits/",
			Checked: day(2026, time.November, 28),
		},
		perHost: true, given: []number{{"perMinute", float64(perMinute)}}, longest: 11 * time.Minute,
		limits: []limit{
			{name: "updates of a ticket", n: 30, per: 10 * time.Minute, methods: "PUT", paths: []string{ticket},
				each: func(r *http.Request) string { return strings.TrimSuffix(in(ticket)(r), ".json") }},
			{name: "updates of tickets", n: 100, per: time.Minute, methods: "PUT", paths: []string{ticket}},
			{name: "incremental-exports", n: 10, per: time.Minute, paths: []string{"/api/v2/incremental/**"}},
			{n: float64(perMinute), per: time.Minute},
		},
	}
}

// Okta returns an option with the limits of Okta's management API: requests a minute for each kind of object (600 for
// users), and requests in flight (75).
func Okta(perMinute, concurrent int) outbound.Option { return okta(perMinute, concurrent).option() }

func okta(perMinute, concurrent int) api {
	return api{
		API: API{
			Name: "Okta", Call: "apis.Okta(600, 75)", Hosts: []string{"okta.com", "oktapreview.com", "okta-emea.com"},
			Says:    "a minute's requests by endpoint; 15 to 75 in flight",
			Source:  "https://developer.okta.com/docs/reference/rl-additional-limits/",
			Checked: day(2026, time.November, 28),
		},
		perHost: true, given: []number{{"perMinute", float64(perMinute)}, {"concurrent", float64(concurrent)}},
		dialect: outbound.Dialect{Name: "Okta's concurrency", Body: oktaConcurrency},
		limits: []limit{
			{name: "concurrent", n: float64(concurrent), inFlight: true},
			{n: float64(perMinute), per: time.Minute, each: in("/api/v1/{}/**")},
		},
	}
}

// oktaConcurrency reads a refusal because of too many requests in flight: its limit is 0.
func oktaConcurrency(r *http.Response, _ []byte) (outbound.RefusalBody, bool) {
	return outbound.RefusalBody{NotRate: true}, r.Header.Get("X-Rate-Limit-Limit") == "0"
}

// Twilio returns an option with the limit of Twilio's API for an account: requests in flight.
func Twilio(concurrent int) outbound.Option { return twilio(concurrent).option() }

func twilio(concurrent int) api {
	return api{
		API: API{
			Name: "Twilio", Call: "apis.Twilio(10)", Hosts: []string{"twilio.com"}, Says: "an account's requests in flight",
			Source:  "https://www.twilio.com/docs/api/errors/20429",
			Checked: day(2026, time.November, 28),
		},
		given: []number{{"concurrent", float64(concurrent)}},
		dialect: outbound.Dialect{Name: "Twilio", Signs: []outbound.Sign{
			{Status: http.StatusTooManyRequests, Body: "20429", NotRate: true},
		}},
		limits: []limit{{name: "concurrent", n: float64(concurrent), inFlight: true}},
	}
}

// Salesforce returns an option with the limits of Salesforce's API for an organization: calls in 24 hours, and calls
// that take over 20 s in flight (25, of a developer's organization 5). Queries, reports and Apex are taken for long.
func Salesforce(perDay, longCalls int) outbound.Option { return salesforce(perDay, longCalls).option() }

func salesforce(perDay, longCalls int) api {
	return api{
		API: API{
			Name: "Salesforce", Call: "apis.Salesforce(100000, 25)", Hosts: []string{"salesforce.com", "force.com"},
			Says: "an organization's calls in 24 hours; 5 or 25 that take over 20 s in flight",
			Source: "https://developer.salesforce.com/docs/platform/salesforce-app-limits-cheatsheet/guide/" +
				"salesforce-app-limits-platform-api.html",
			Checked: day(2026, time.November, 28),
		},
		perHost: true, given: []number{{"perDay", float64(perDay)}, {"longCalls", float64(longCalls)}},
		limits: []limit{
			{name: "long", n: float64(longCalls), inFlight: true, paths: []string{"/services/data/*/query/**",
				"/services/data/*/query", "/services/data/*/queryAll", "/services/data/*/queryAll/**",
				"/services/data/*/analytics/**", "/services/apexrest/**"}},
			{name: "day", n: float64(perDay), per: 24 * time.Hour},
		},
	}
}

// Google returns an option with a user's requests a minute to each of Google's APIs, such as Drive or Gmail.
func Google(perMinute int) outbound.Option { return google(perMinute).option() }

func google(perMinute int) api {
	return api{
		API: API{
			Name: "Google", Call: "apis.Google(600)", Hosts: []string{"googleapis.com"},
			Says:   "a user's requests a minute to an API (Sheets: 60, Drive: 12,000), and more that the console shows",
			Source: "https://docs.cloud.google.com/docs/quotas/overview", Checked: day(2026, time.November, 28),
		},
		credential: []string{"?key", "X-Goog-Api-Key"}, given: []number{{"perMinute", float64(perMinute)}},
		limits: []limit{{n: float64(perMinute), per: time.Minute, each: googleAPI}},
	}
}

// googleAPI returns "drive" for both www.googleapis.com/drive/v3 and drive.googleapis.com.
func googleAPI(r *http.Request) string {
	name, _, _ := strings.Cut(r.URL.Hostname(), ".")
	if !strings.EqualFold(name, "www") && !strings.EqualFold(name, "content") {
		return strings.ToLower(name)
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for len(parts) > 1 && slices.Contains([]string{"upload", "batch", "resumable", "download"}, parts[0]) {
		parts = parts[1:]
	}
	return parts[0]
}
