package main

import (
	"math"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v75/github"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

// go-github, as it is, makes 200 calls to a server that allows 100 in 4 s. It refuses
// by itself to make a call while it knows that none is left, so that must not happen either.
func TestGoGitHub(t *testing.T) {
	var server *pacetest.Server
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) })
	simulated(t, handler, func(t *testing.T, base http.RoundTripper) {
		repository := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"id": 1, "full_name": "nextfree/pace"}`))
		})
		server = reserve.Must(pacetest.New(pacetest.FixedWindow(100, 4*time.Second),
			pacetest.WithDialect(pacetest.GitHub), pacetest.WithHandler(repository)))
		limiter := reserve.Must(pace.NewBursty(math.Inf(1), pace.WithBurst(0))) // nothing is known of the limit
		transport := reserve.Must(outbound.New(base, limiter, outbound.Adaptive()))
		client := github.NewClient(&http.Client{Transport: transport})
		client.BaseURL = &url.URL{Scheme: "http", Host: "api.github.com", Path: "/"}
		calls := make(chan struct{}, 200)
		for range cap(calls) {
			calls <- struct{}{}
		}
		close(calls)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range calls {
					repo, _, err := client.Repositories.Get(t.Context(), "nextfree", "pace")
					if err != nil || repo.GetFullName() != "nextfree/pace" {
						t.Errorf("%v, %v", repo, err)
					}
				}
			})
		}
		all.Wait()
		require.Len(t, server.Accepted(), 200)
		require.Empty(t, server.Refused())
	})
}
