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

// Settle sets what a call costs of a limit, once its handler knows: pacetest.Settle(r, "tokens", used).
//
// A call of 60 leaves 40 in a [Bucket] of 100; if it settles at 30, there are 70, and in a [Window] the 30 count from
// when the call was let in. A cost above what is left leaves a debt.
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
