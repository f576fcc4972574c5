package matrix

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The twenty APIs, by clients that know nothing and by clients that know the documentation.
func TestTwenty(t *testing.T) {
	only := regexp.MustCompile(pick(`^(Airtable|Okta|AWS)/`, `.`))
	for _, a := range Twenty() {
		for _, c := range append([]APIClient{Adaptive, Learning}, a.Documented...) {
			name := a.Name + "/" + c.Name
			if !only.MatchString(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				var all []APIOutcome
				for seed := range runs() {
					synctest.Test(t, func(*testing.T) {
						<-time.After(time.Until(day) + time.Duration(seed)*137*time.Millisecond)
						all = append(all, a.Run(c, uint64(seed+1)))
					})
				}
				slices.SortFunc(all, func(a, b APIOutcome) int { return int(1e6 * (a.Took - b.Took)) })
				o := all[len(all)/2]
				t.Logf("%-24s %-18s lines %2d  took %6.2f  refused %5.1f %%  bans %3d  sent %6d  reached %4d  finished %v",
					a.Name, c.Name, c.Lines, o.Took, 100*o.Refused, o.Bans, o.Sent, o.Reached, o.Finished)
			})
		}
	}
	_ = os.Getenv
}
