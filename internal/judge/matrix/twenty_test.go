package matrix

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// documentedTook is what a reader of each documentation needs at most, in units of the ideal. A window costs a round
// trip each time: 200 ms of a second at Airtable's, 100 at SEC's. GitHub's calls come in an order in which a search
// holds up the others; MediaWiki says "5 s" and has the lag for 20.
var documentedTook = map[string]float64{
	"GitHub": 1.37, "Stripe": 1.22, "Shopify REST": 1.05, "Shopify GraphQL": 1.05, "Slack": 1.05, "Discord": 1.3,
	"Jira": 1.06, "Salesforce": 1.03, "HubSpot": 1.05, "Zendesk": 1.06, "Notion": 1.05, "Airtable": 1.22, "X": 1.02,
	"Google": 1.05, "AWS": 1.05, "Azure ARM": 1.06, "Okta": 1.05, "Twilio": 1.28, "Cloudflare": 1.03,
	"Cloudflare, RateLimit": 1.03, "SEC EDGAR": 1.2, "MediaWiki maxlag": 1.8,
}

// The twenty APIs, by clients that know nothing and by clients that know the documentation: these get no penalty, and
// next to no refusal.
func TestTwenty(t *testing.T) {
	only := regexp.MustCompile(pick(`^(Airtable|Okta|AWS|HubSpot)/documented`, `.`))
	for _, a := range Twenty() {
		for _, c := range append([]APIClient{Adaptive, Learning}, a.Documented...) {
			name := a.Name + "/" + c.Name
			if !only.MatchString(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				o := a.median(t, c, runs())
				t.Logf("%-24s %-18s lines %2d  took %6.2f  refused %5.1f %%  bans %3d  sent %6d  reached %4d  finished %v",
					a.Name, c.Name, c.Lines, o.Took, 100*o.Refused, o.Bans, o.Sent, o.Reached, o.Finished)
				if c.Name != "documented" || os.Getenv("SITUATIONS") != "" {
					return
				}
				require.True(t, o.Finished)
				require.Zero(t, o.Bans)
				require.LessOrEqual(t, o.Took, documentedTook[a.Name])
				require.LessOrEqual(t, o.Refused, 0.05)
			})
		}
	}
}

// median runs a cell so many times, each with other delays and at another moment.
func (a *API) median(t *testing.T, c APIClient, runs int) APIOutcome {
	all := make([]APIOutcome, runs)
	for i := range all {
		synctest.Test(t, func(*testing.T) {
			<-time.After(time.Until(day) + time.Duration(i)*137*time.Millisecond)
			all[i] = a.Run(c, uint64(i+1))
		})
	}
	slices.SortFunc(all, func(a, b APIOutcome) int { return int(1e6 * (a.Took - b.Took)) })
	return all[runs/2]
}
