package pacetest_test

import (
	"io"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

var dialects = []pacetest.Dialect{
	pacetest.Bare, pacetest.RetryAfter, pacetest.Unavailable, pacetest.RetryAfterMs, pacetest.Draft, pacetest.GitHub,
	pacetest.GitLab, pacetest.Okta, pacetest.OpenAI, pacetest.Anthropic, pacetest.Discord, pacetest.Atlassian,
	pacetest.Google, pacetest.Shopify,
}

// Package outbound reads in each dialect what the server means.
func TestDialectsAreRead(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pass(time.Until(day))
				server := reserve.Must(pacetest.New(pacetest.Unlimited(), pacetest.WithDialect(d)))
				server.Script(pacetest.Answer{Refuse: true, After: 2 * time.Second})
				client := pacetest.Client(t, server)
				var heard []time.Duration
				client.Transport = reserve.Must(outbound.New(client.Transport, nil, outbound.WithRetries(1), outbound.WithHooks(outbound.Hooks{
					Throttled: func(_ *http.Response, _ string, after time.Duration) { heard = append(heard, after) },
				})))
				r, err := client.Get("http://a/graphql.json")
				require.NoError(t, err)
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				r.Body.Close()
				require.Equal(t, 200, r.StatusCode)
				require.Empty(t, body)
				require.Len(t, server.Refused(), 1)
				want := 2 * time.Second
				if d.Name == pacetest.Bare.Name {
					want = time.Second // outbound's own
				}
				require.Equal(t, []time.Duration{want}, heard)
				require.Equal(t, want, server.Accepted()[0].Sub(server.Refused()[0]))
			})
		})
	}
}

// In each dialect and by each rule, 64 callers that do not know the rate make their calls, and the
// rule is kept.
func TestDialectsAreEnough(t *testing.T) {
	for _, d := range dialects {
		for name, rule := range map[string]pacetest.Rule{
			"window":        pacetest.Window(50, time.Second),
			"fixed windows": pacetest.FixedWindow(50, time.Second),
			"bucket":        pacetest.Bucket(50, 10),
		} {
			t.Run(d.Name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					pass(time.Until(day))
					server := reserve.Must(pacetest.New(rule, pacetest.WithDialect(d)))
					client := pacetest.Client(t, server)
					limiter := reserve.Must(pace.NewBursty(math.Inf(1), pace.WithBurst(0)))
					client.Transport = reserve.Must(outbound.New(client.Transport, limiter, outbound.Adaptive(), outbound.WithRetries(100)))
					begin := time.Now()
					var all sync.WaitGroup
					for range 64 {
						all.Go(func() {
							for range 4 {
								if r, err := client.Get("http://a/graphql.json"); err == nil {
									r.Body.Close()
								}
							}
						})
					}
					all.Wait()
					require.Len(t, server.Accepted(), 256)
					longest := time.Minute
					if d.Name == pacetest.Anthropic.Name { // of one permit of 50 a second it says a whole second
						longest = 10 * time.Minute
					}
					require.Less(t, time.Since(begin), longest)
					pacetest.NeverMoreThan(t, 100, time.Second, server.Accepted())
				})
			})
		}
	}
}
