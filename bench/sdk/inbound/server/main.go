// Command server is a small API behind three tiers, to look at with curl. It serves
// on 127.0.0.1 and ends by itself.
//
//	go run ./inbound/server &    # in bench/sdk
//	curl -i -H 'User: ann' http://127.0.0.1:8429/items/1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/window"
)

func main() {
	address := flag.String("address", "127.0.0.1:8429", "where to serve")
	lasts := flag.Duration("for", 5*time.Minute, "how long to serve")
	flag.Parse()

	perUser := reserve.Must(window.Policy(2, time.Minute))
	perEndpoint := reserve.Must(pace.Bursty(10, reserve.WithStored(10)))
	everybody := reserve.Must(pace.Bursty(50, reserve.WithStored(50)))
	limits := reserve.Must(inbound.New([]inbound.Tier{
		inbound.PerKey("user-endpoint", inbound.Both(user, inbound.Endpoint), perUser),
		inbound.PerKey("endpoint", inbound.Endpoint, perEndpoint),
		inbound.Global("global", everybody),
	}, inbound.WithXRateLimit()))

	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", limits.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "item", r.PathValue("id"))
	})))
	server := &http.Server{Addr: *address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	time.AfterFunc(*lasts, func() { _ = server.Shutdown(context.Background()) })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// user is who the request says it is from; a real program would ask whoever has
// authenticated it.
func user(r *http.Request) (string, error) {
	name := r.Header.Get("User")
	if name == "" {
		return "", inbound.ErrSkip
	}
	return name, nil
}
