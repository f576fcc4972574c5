package pacetest

import (
	"net/http"
	"time"
)

type charge struct {
	server *Server
	at     time.Time
	costs  []int // nil: it has been answered
}

type chargeKey struct{}

// Settle sets what a call costs of a limit, once its handler knows: pacetest.Settle(r, "tokens", used). In a [Window]
// it counts from when the call was let in. A cost above what is left leaves a debt.
//
// It panics with a *[reserve.ValueError] if no [Server] is answering the request, or has a limit of that name.
func Settle(r *http.Request, limit string, n int) {
	c, _ := r.Context().Value(chargeKey{}).(*charge)
	if c == nil {
		panic(valueError("the request of Settle", r.URL, "one that a Server has let in"))
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.costs == nil {
		panic(valueError("the request of Settle", r.URL, "one that is not answered yet"))
	}
	for i, l := range s.limits {
		if l.name == limit {
			l.take(time.Now(), c.at, max(0, n)-c.costs[i])
			c.costs[i] = max(0, n)
			return
		}
	}
	panic(valueError("the limit of Settle", limit, "the name of one of the Server's limits"))
}
