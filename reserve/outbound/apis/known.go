package apis

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve/outbound"
)

// known are the APIs whose limits need no number of the caller's.
func known() []api {
	return []api{gitHub, stripe, slack, discord, notion, x, azureARM, cloudflare, airtable, sec, mediaWiki,
		gitLab, trello, mailchimp, strava, nominatim, arXiv, cratesIO, telegram}
}

// List returns what is known of each API, for people.
func List() []API {
	var list []API
	for _, a := range append(known(), asked()...) {
		list = append(list, a.API)
	}
	return list
}

// Known returns an option with the limits of all APIs of [List] that need no number: GitHub, Stripe, Slack, Discord,
// ...
func Known() outbound.Option {
	return outbound.Options(func() (opts []outbound.Option, _ error) {
		for _, a := range known() {
			opts = append(opts, a.option())
		}
		return opts, nil
	})
}

// GitHub returns an option with the limits of GitHub's REST and GraphQL APIs.
func GitHub() outbound.Option { return gitHub.option() }

var gitHub = api{
	API: API{
		Name: "GitHub", Call: "apis.GitHub()", Hosts: []string{"api.github.com", "uploads.github.com"},
		Says: "what responses say an hour or a minute; 900 points a minute (GET 1, others 5), GraphQL 2000 (mutations 5); " +
			"80 posts a minute, 500 an hour; 100 in flight; then a minute's stop",
		Source:  "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api",
		Checked: day(2026, time.November, 28),
	},
	longest: 61 * time.Minute,
	limits: []limit{
		{name: "concurrent", n: 100, inFlight: true},
		{name: "search", paths: []string{"/search/**"}},
		{name: "graphql", paths: []string{"/graphql"}},
		{name: "core", not: []string{"/search/**", "/graphql"}},
		{name: "content, hourly", n: 500, per: time.Hour, methods: "POST PATCH PUT", not: []string{"/graphql"}},
		{name: "content", n: 80, per: time.Minute, methods: "POST PATCH PUT", not: []string{"/graphql"}},
		{name: "GraphQL points", n: 2000, per: time.Minute, paths: []string{"/graphql"}, penalty: time.Minute,
			cost: func(r *http.Request) int {
				if strings.Contains(string(outbound.Body(r)), "mutation") {
					return 5
				}
				return 1
			}},
		{name: "points", n: 900, per: time.Minute, not: []string{"/graphql"}, penalty: time.Minute,
			cost: func(r *http.Request) int {
				if r.Method == "" || strings.Contains("GET HEAD OPTIONS", r.Method) {
					return 1
				}
				return 5
			}},
	},
}

// Stripe returns an option with the limits of Stripe's API, of its test mode too.
func Stripe() outbound.Option { return stripe.option() }

var stripe = api{
	API: API{
		Name: "Stripe", Call: "apis.Stripe()", Hosts: []string{"api.stripe.com", "files.stripe.com"},
		Says:   "100 a second (test mode: 25), 25 to an endpoint; 20 to files (reads, writes) and to search",
		Source: "https://docs.stripe.com/rate-limits", Checked: day(2026, time.November, 28),
	},
	limits: []limit{
		{name: "files", n: 20, per: time.Second, paths: []string{"/v1/files", "/v1/files/**"},
			each: func(r *http.Request) string { return strconv.FormatBool(r.Method == http.MethodPost) }},
		{name: "search", n: 20, per: time.Second, paths: []string{"/v1/*/search"}},
		{name: "endpoint-rate", n: 25, per: time.Second, each: endpoint, adaptive: true},
		{name: "global-rate", n: 100, per: time.Second, adaptive: true, cost: func(r *http.Request) int {
			if strings.Contains(r.Header.Get("Authorization"), "_test_") {
				return 4
			}
			return 1
		}},
	},
}

// Discord returns an option with the limits of Discord's API.
func Discord() outbound.Option { return discord.option() }

var discord = api{
	API: API{
		Name: "Discord", Call: "apis.Discord()", Hosts: []string{"discord.com", "discordapp.com"},
		Says:   "50 a second; what responses say of routes",
		Source: "https://discord.com/developers/docs/topics/rate-limits", Checked: day(2026, time.November, 28),
	},
	limits: []limit{{n: 50, per: time.Second, not: []string{
		"/api/*/webhooks/**", "/api/*/interactions/**", "/api/webhooks/**", "/api/interactions/**",
	}}},
}

// Notion returns an option with the limits of Notion's API.
func Notion() outbound.Option { return notion.option() }

var notion = api{
	API: API{
		Name: "Notion", Call: "apis.Notion()", Hosts: []string{"api.notion.com"},
		Says:   "3 a second for a connection on average, some more at once; and a workspace's",
		Source: "https://developers.notion.com/reference/request-limits", Checked: day(2026, time.November, 28),
	},
	limits: []limit{{n: 3, refill: 3, adaptive: true}},
}

// X returns an option with the limits of X's API (Twitter's), which depend on the plan and the endpoint: responses
// tell.
func X() outbound.Option { return x.option() }

var x = api{
	API: API{
		Name: "X", Call: "apis.X()", Hosts: []string{"api.x.com", "api.twitter.com"},
		Says:   "what responses say of each endpoint in 15 minutes",
		Source: "https://docs.x.com/x-api/fundamentals/rate-limits", Checked: day(2026, time.November, 28),
	},
	longest: 16 * time.Minute,
	limits:  []limit{{each: endpoint}},
}

// AzureARM returns an option with the limits of Azure's Resource Manager.
func AzureARM() outbound.Option { return azureARM.option() }

const subscription = "/subscriptions/{}/**"

var azureARM = api{
	API: API{
		Name: "Azure ARM", Call: "apis.AzureARM()", Hosts: []string{"management.azure.com"},
		Says:    "a subscription's reads: 250 and 25 a second; writes, deletes: 200 and 10 a second",
		Source:  "https://learn.microsoft.com/en-us/azure/azure-resource-manager/management/request-limits-and-throttling",
		Checked: day(2026, time.November, 28),
	},
	dialect: outbound.Dialect{Name: "Azure ARM", Read: readAzure},
	limits: []limit{
		{name: "reads", n: 250, refill: 25, methods: "GET HEAD OPTIONS", each: in(subscription)},
		{name: "writes", n: 200, refill: 10, methods: "PUT POST PATCH", each: in(subscription)},
		{name: "deletes", n: 200, refill: 10, methods: "DELETE", each: in(subscription)},
	},
}

func readAzure(h http.Header) (all []outbound.Left) {
	for name, refill := range map[string]float64{"reads": 25, "writes": 10, "deletes": 10} {
		left, err := strconv.ParseFloat(h.Get("X-Ms-Ratelimit-Remaining-Subscription-"+name), 64)
		if err == nil && left >= 0 {
			all = append(all, outbound.Left{Of: name, Permits: left, Rate: refill})
		}
	}
	return all
}

// Cloudflare returns an option with the limits of Cloudflare's API.
func Cloudflare() outbound.Option { return cloudflare.option() }

var cloudflare = api{
	API: API{
		Name: "Cloudflare", Call: "apis.Cloudflare()", Hosts: []string{"api.cloudflare.com"},
		Says:   "1200 in 5 minutes, then a stop of 5 minutes; GraphQL 300",
		Source: "https://developers.cloudflare.com/fundamentals/api/reference/limits/", Checked: day(2026, time.November, 28),
	},
	credential: []string{"X-Auth-Key", "X-Auth-User-Service-Key"},
	limits: []limit{
		{name: "GraphQL", n: 300, per: 5 * time.Minute, paths: []string{"/client/v4/graphql"}},
		{n: 1200, per: 5 * time.Minute, penalty: 5 * time.Minute},
	},
}

// Airtable returns an option with the limits of Airtable's API.
func Airtable() outbound.Option { return airtable.option() }

var airtable = api{
	API: API{
		Name: "Airtable", Call: "apis.Airtable()", Hosts: []string{"api.airtable.com", "content.airtable.com"},
		Says:   "5 a second for a base, 50 for a token; then a stop of 30 s",
		Source: "https://airtable.com/developers/web/api/rate-limits", Checked: day(2026, time.November, 28),
	},
	credential: []string{"?api_key"},
	limits: []limit{
		{name: "token", n: 50, per: time.Second, penalty: 30 * time.Second, adaptive: true},
		{name: "base", n: 5, per: time.Second, penalty: 30 * time.Second, adaptive: true,
			not:  []string{"/v0/meta/whoami", "/v0/meta/bases"},
			each: in("/v0/meta/bases/{}/**", "/v0/bases/{}/**", "/v0/{}/**")},
	},
}

// SEC returns an option with the limits of EDGAR, of the U.S. Securities and Exchange Commission.
func SEC() outbound.Option { return sec.option() }

var sec = api{
	API: API{
		Name: "SEC EDGAR", Call: "apis.SEC()", Hosts: []string{"sec.gov"},
		Says:   "10 a second for an address; then a stop of 10 minutes",
		Source: "https://www.sec.gov/os/accessing-edgar-data", Checked: day(2026, time.November, 28),
	},
	// A block begins anew with each call: the address' other programs have begun it a little later.
	limits: []limit{{n: 10, per: time.Second, penalty: 10*time.Minute + 10*time.Second, adaptive: true, everyone: true}},
}

// MediaWiki returns an option with limits for the APIs of Wikipedia and its sisters.
func MediaWiki() outbound.Option { return mediaWiki.option() }

var mediaWiki = api{
	API: API{
		Name: "MediaWiki", Call: "apis.MediaWiki()",
		Hosts: []string{"wikipedia.org", "wikimedia.org", "wikidata.org", "mediawiki.org", "wiktionary.org", "wikisource.org",
			"wikibooks.org", "wikiquote.org", "wikinews.org", "wikiversity.org", "wikivoyage.org"},
		Says: "no number for reads, to be called with consideration: here 10 a second, 2 in flight; " +
			"a server that lags says for how long",
		Source: "https://www.mediawiki.org/wiki/API:Etiquette", Checked: day(2026, time.November, 28),
	},
	limits: []limit{{name: "concurrent", n: 2, inFlight: true}, {n: 10, refill: 10}},
}
