package a

import (
	"context"
	"net"
	"net/http"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"golang.org/x/time/rate"
)

func policy(string) (*pace.Policy, error) { return pace.Bursty(1) }

var clients = keyed.New(policy)

func handle(w http.ResponseWriter, r *http.Request) {
	if !clients.TryAcquire(r.RemoteAddr, 1) { // want `a key with the client's port limits nothing`
		w.WriteHeader(http.StatusTooManyRequests)
	}
	key := r.RemoteAddr
	clients.Acquire(r.Context(), key, 1) // want `a key with the client's port`
	clients.For(r.RemoteAddr)            // want `a key with the client's port`
}

func accept(ctx context.Context, c net.Conn) {
	clients.Acquire(ctx, c.RemoteAddr().String(), 1) // want `a key with the client's port`
}

func byHand(all map[string]*rate.Limiter, r *http.Request) *rate.Limiter {
	return all[r.RemoteAddr] // want `a key with the client's port`
}

func client(r *http.Request) (string, error) {
	return r.RemoteAddr, nil // want `a key with the client's port`
}

func middleware(p *pace.Policy) {
	inbound.PerKey("a", client, p)
	inbound.PerKey("b", func(r *http.Request) (string, error) {
		key := r.RemoteAddr
		return key, nil // want `a key with the client's port`
	}, p)
}

// What is right.

func right(r *http.Request, seen map[string]int) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return err
	}
	clients.TryAcquire(host, 1)
	seen[r.RemoteAddr]++
	key := r.RemoteAddr
	if user := r.Header.Get("User"); user != "" {
		key = user
	}
	clients.TryAcquire(key, 1)
	return nil
}
