// Package routers shows inbound's middleware in other routers than http.ServeMux: chi, gin and echo.
// The tests run the examples.
//
// The middleware is an ordinary func(http.Handler) http.Handler. Routers differ in how it learns the
// route, which [inbound.Endpoint] reads from the request's Pattern: net/http and chi fill that in, gin and echo do not.
package routers

import (
	"fmt"
	"net/http"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/window"
)

// Limits are the three limits of all examples: 2 requests a minute for each client and route, 3 a minute for each
// route, and 50 a second for all.
func Limits() (*inbound.Middleware, error) {
	client, err := inbound.RemoteAddr()
	if err != nil {
		return nil, err
	}
	perClient, err := window.Policy(2, time.Minute)
	if err != nil {
		return nil, err
	}
	perRoute, err := window.Policy(3, time.Minute)
	if err != nil {
		return nil, err
	}
	everybody, err := pace.Bursty(50, reserve.WithStored(50))
	if err != nil {
		return nil, err
	}
	return inbound.New([]inbound.Tier{
		inbound.PerKey("client-route", inbound.Both(client, inbound.Endpoint), perClient),
		inbound.PerKey("route", inbound.Endpoint, perRoute),
		inbound.Global("global", everybody),
	})
}

// item is the handler behind the limits.
func item(w http.ResponseWriter, id string) { fmt.Fprintf(w, "item %s\n", id) }
