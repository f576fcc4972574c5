package matrix

import (
	"net/http"
	"testing"
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
}

func byName(opt func() outbound.Option) APIClient {
	return APIClient{Name: "by name", Lines: 1, New: func(base http.RoundTripper) http.RoundTripper {
		return outboundOf(nil, opt())(base)
	}}
}

// Alone, a preset brings no ban and next to no refusal, and takes at most a quarter longer than the ideal.
func TestNamedAlone(t *testing.T) {
	for _, a := range Twenty() {
		p, ok := presets[a.Name]
		if !ok {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			a.Host = p.Host
			o := a.median(t, byName(p.Option), 1)
			t.Logf("%-24s took %5.2f  refused %4.1f %%  bans %d  reached %d", a.Name, o.Took, 100*o.Refused, o.Bans, o.Reached)
			require.True(t, o.Finished)
			require.Zero(t, o.Bans)
			// A place in flight is held for a round trip more than the server knows.
			require.LessOrEqual(t, o.Took, max(1.25, 1.05*float64(a.Safe())/float64(a.Ideal())))
			require.LessOrEqual(t, o.Refused, max(0.02, refusedOf[a.Name]))
		})
	}
}
