package matrix

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// refusedOf is how many calls of a reader of the documentation may be refused: MediaWiki's lag begins with a refusal of
// all that are out.
var refusedOf = map[string]float64{"MediaWiki maxlag": 0.045}

// The twenty APIs, by clients that know nothing and by clients that know the documentation: these get no penalty, and
// next to no refusal, and take 5 % longer than is safe at most.
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
				safe := float64(a.Safe()) / float64(a.Ideal())
				t.Logf("%-24s %-18s lines %2d  took %6.2f (safe %.2f)  refused %5.1f %%  bans %3d  sent %6d  reached %4d  finished %v",
					a.Name, c.Name, c.Lines, o.Took, safe, 100*o.Refused, o.Bans, o.Sent, o.Reached, o.Finished)
				if c.Name != "documented" || os.Getenv("SITUATIONS") != "" {
					return
				}
				require.True(t, o.Finished)
				require.Zero(t, o.Bans)
				require.LessOrEqual(t, o.Took, 1.05*safe)
				require.LessOrEqual(t, o.Refused, cmp.Or(refusedOf[a.Name], 0.005))
			})
		}
	}
}

// Who knows nothing, but is told what is left of a window, needs hardly longer. Two calls that are refused at a window's
// end say nothing of how many may be out: before, Zendesk took 1.5.
func TestTwentyTold(t *testing.T) {
	for _, a := range Twenty() {
		if a.Name == "Zendesk" || a.Name == "X" {
			o := a.median(t, Learning, 3)
			require.LessOrEqual(t, o.Took, 1.1, a.Name)
			require.LessOrEqual(t, o.Refused, 0.03, a.Name)
		}
	}
}

// Who knows nothing finds the rate: how long it takes at most, and how much is refused. Before, half of the calls to
// Shopify's GraphQL were refused, Airtable took 31 times the ideal, and SEC EDGAR never ended.
func TestTwentyUntold(t *testing.T) {
	want := map[string][2]float64{
		"Shopify GraphQL": {1.05, 0.08}, "HubSpot": {1.2, 0.08}, "Airtable": {2, 0.04}, "SEC EDGAR": {6, 0.01}, "Slack": {1.25, 0.1},
		"Stripe": {1.25, 0.02}, "Google": {1.15, 0.06}, "Okta": {1.05, 0.01}, "Cloudflare": {1.2, 0.04}, "Notion": {1.05, 0.06},
	}
	for _, a := range Twenty() {
		if most, ok := want[a.Name]; ok && (!raced || a.Name == "Airtable" || a.Name == "Slack") {
			o := a.median(t, Learning, 3)
			require.True(t, o.Finished, a.Name)
			require.LessOrEqual(t, o.Took, most[0], a.Name)
			require.LessOrEqual(t, o.Refused, most[1], a.Name)
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
