package matrix

import (
	"cmp"
	"net/http"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/apis"
)

// A Preset is what package apis knows of an API of the simulators.
type Preset struct {
	Host   string
	Option func() outbound.Option
}

var presets = map[string]Preset{
	"GitHub":                {"api.github.com", apis.GitHub},
	"Stripe":                {"api.stripe.com", apis.Stripe},
	"Shopify REST":          {"shop.myshopify.com", func() outbound.Option { return apis.Shopify(2, 40) }},
	"Shopify GraphQL":       {"shop.myshopify.com", func() outbound.Option { return apis.ShopifyGraphQL(50, 1000) }},
	"Slack":                 {"slack.com", apis.Slack},
	"Discord":               {"discord.com", apis.Discord},
	"Jira":                  {"site.atlassian.net", func() outbound.Option { return apis.Jira(65000) }},
	"Salesforce":            {"org.my.salesforce.com", func() outbound.Option { return apis.Salesforce(15000, 5) }},
	"HubSpot":               {"api.hubapi.com", func() outbound.Option { return apis.HubSpot(100, 10*time.Second) }},
	"Zendesk":               {"site.zendesk.com", func() outbound.Option { return apis.Zendesk(400) }},
	"Notion":                {"api.notion.com", apis.Notion},
	"Airtable":              {"api.airtable.com", apis.Airtable},
	"X":                     {"api.x.com", apis.X},
	"Google":                {"www.googleapis.com", func() outbound.Option { return apis.Google(600) }},
	"Azure ARM":             {"management.azure.com", apis.AzureARM},
	"Okta":                  {"site.okta.com", func() outbound.Option { return apis.Okta(600, 10) }},
	"Twilio":                {"api.twilio.com", func() outbound.Option { return apis.Twilio(8) }},
	"Cloudflare":            {"api.cloudflare.com", apis.Cloudflare},
	"Cloudflare, RateLimit": {"api.cloudflare.com", apis.Cloudflare},
	"SEC EDGAR":             {"data.sec.gov", apis.SEC},
	"MediaWiki maxlag":      {"en.wikipedia.org", apis.MediaWiki},
	"GitLab":                {"", apis.GitLab},
	"Asana":                 {"", func() outbound.Option { return apis.Asana(150) }},
	"Trello":                {"", apis.Trello},
	"Mailchimp":             {"", apis.Mailchimp},
	"Strava":                {"", apis.Strava},
	"Nominatim":             {"", apis.Nominatim},
	"arXiv":                 {"", apis.ArXiv},
	"crates.io":             {"", apis.CratesIO},
	"Telegram":              {"", apis.Telegram},
	"Riot":                  {"", func() outbound.Option { return apis.Riot(20, 100) }},
}

func byName(opt func() outbound.Option) APIClient {
	return APIClient{Name: "by name", Lines: 1, New: func(base http.RoundTripper) http.RoundTripper {
		return outboundOf(nil, opt())(base)
	}}
}

// Alone, a preset brings no ban and next to no refusal, and takes at most a quarter longer than the ideal.
func TestNamedAlone(t *testing.T) {
	for _, a := range append(Twenty(), Beyond()...) {
		p, ok := presets[a.Name]
		if !ok {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			a.Host = cmp.Or(p.Host, a.Host)
			o := a.median(t, byName(p.Option), runs())
			t.Logf("%-24s took %5.2f  refused %4.1f %%  bans %d  reached %d", a.Name, o.Took, 100*o.Refused, o.Bans, o.Reached)
			require.True(t, o.Finished)
			require.Zero(t, o.Bans)
			// A place in flight is held for a round trip more than the server knows.
			require.LessOrEqual(t, o.Took, max(1.25, 1.05*float64(a.Safe())/float64(a.Ideal())))
			require.LessOrEqual(t, o.Refused, max(0.02, min(0.025, refusedOf[a.Name]))) // MediaWiki's lag: 2.1 %
		})
	}
}

// bansAmong is how many penalties three programs, or one beside a neighbour, may begin where there are any: nothing tells a
// program of the others but a penalty. A block of SEC's that a neighbour renews for ever ends for nobody.
var bansAmong = map[string]struct{ three, beside int }{
	"GitHub": {4, 5}, "Cloudflare": {3, 3}, "Cloudflare, RateLimit": {3, 3}, "Airtable": {10, 3}, "SEC EDGAR": {5, 2},
}

// With other programs, all get their work done, and penalties are few.
func TestNamedAmong(t *testing.T) {
	only := regexp.MustCompile(pick(`^(Airtable|Okta|Notion|Stripe|Trello)$`, `.`))
	for _, row := range []struct {
		name      string
		programs  int
		neighbour bool
	}{{"three programs", 3, false}, {"beside a neighbour of half", 1, true}} {
		for _, a := range append(Twenty(), Beyond()...) {
			p, ok := presets[a.Name]
			if !ok || !only.MatchString(a.Name) {
				continue
			}
			t.Run(row.name+"/"+a.Name, func(t *testing.T) {
				a.Host = cmp.Or(p.Host, a.Host)
				var o APIOutcome
				synctest.Test(t, func(*testing.T) {
					<-time.After(time.Until(day))
					o = a.Among(byName(p.Option), row.programs, row.neighbour, 1)
				})
				t.Logf("%-24s took %5.2f  refused %4.1f %%  bans %d  reached %d", a.Name, o.Took, 100*o.Refused, o.Bans, o.Reached)
				require.True(t, o.Finished || a.Renewed && row.neighbour)
				most := bansAmong[a.Name].three
				if row.neighbour {
					most = bansAmong[a.Name].beside
				}
				require.LessOrEqual(t, o.Bans, most)
			})
		}
	}
}
