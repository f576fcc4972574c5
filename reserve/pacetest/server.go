package pacetest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// A Server is an http.Handler that limits its callers. It comes from [New]. All methods may be called at the same time.
type Server struct {
	dialect Dialect
	handler http.Handler
	clock   clockwork.Clock

	mu       sync.Mutex
	limits   []limit
	script   []Answer
	stopped  time.Time // all calls are refused until then
	calls    []Call
	inFlight int
	most     int
}

// limit is one of a server's limits, and what it remembers.
type limit struct {
	name string
	cost func(*http.Request) int
	rule
}

// A Call is one that a [Server] got.
type Call struct {
	At       time.Time     // when it was let in or refused: when it arrived, and its Stall was over
	Request  *http.Request // its body is not there any more
	Accepted bool          // it was let in
}

// ServeHTTP answers a call as the script says, or else as the limits do.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := s.enter()
	defer s.leave()
	if answer.Stall > 0 {
		select {
		case <-s.clock.After(answer.Stall):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // the client has left
		}
	}
	c, accepted := s.decide(w.Header(), r, &answer)
	defer s.done(c)
	switch {
	case answer.Drop:
		panic(http.ErrAbortHandler)
	case answer.Status != 0:
		w.WriteHeader(answer.Status)
		io.WriteString(w, answer.Body)
	case accepted:
		s.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chargeKey{}, c)))
	default:
		w.WriteHeader(s.dialect.Status)
		io.WriteString(w, answer.Body)
	}
}

// enter counts a call that arrives, and returns what the script says of it.
func (s *Server) enter() Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	return s.next(s.clock.Now())
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}

// decide lets a call in or refuses it, sets the headers that say so, and remembers it. The charge is
// nil if it costs nothing. The answer's body becomes that of a refusal.
func (s *Server) decide(h http.Header, r *http.Request, a *Answer) (c *charge, accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var costs []int
	accepted = !a.Refuse && !a.Drop && a.Status < http.StatusBadRequest
	defer func() { s.calls = append(s.calls, Call{At: now, Request: r, Accepted: accepted}) }()
	if a.Drop || a.Status != 0 {
		for name, values := range a.Header {
			h[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
		return nil, accepted
	}
	states := make([]State, len(s.limits))
	worst := 0 // the limit that refuses for the longest time
	for i := range s.limits {
		l := &s.limits[i]
		n := max(0, l.cost(r))
		costs = append(costs, n)
		states[i] = l.state(now, n)
		states[i].Name, states[i].Cost = l.name, n
		accepted = accepted && !states[i].Refused
		if s := &states[worst]; states[i].Refused && (!s.Refused || states[i].Wait > s.Wait) {
			worst = i
		}
	}
	for i := range s.limits {
		if accepted {
			s.limits[i].take(now, costs[i])
			name, cost := states[i].Name, states[i].Cost
			states[i] = s.limits[i].state(now, 0)
			states[i].Name, states[i].Cost = name, cost
		}
	}
	if a.Refuse {
		s := &states[worst]
		s.Refused, s.Limit, s.Left, s.Wait, s.Next = true, max(1, s.Limit), 0, a.After, a.After
	}
	for i := range states {
		s.dialect.write(h, now, states[i])
	}
	if accepted {
		return &charge{s, now, costs}, true
	}
	a.Body = s.dialect.refuse(h, states[worst])
	return nil, false
}

// done gives back what a call held while it was answered.
func (s *Server) done(c *charge) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range c.costs {
		s.limits[i].done(n)
	}
	c.costs = nil
}

// Calls returns all calls so far, in the order in which they were let in or refused.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Accepted returns when calls were let in.
func (s *Server) Accepted() []time.Time { return s.times(true) }

// Refused returns when calls were refused, or dropped.
func (s *Server) Refused() []time.Time { return s.times(false) }

func (s *Server) times(accepted bool) (at []time.Time) {
	for _, c := range s.Calls() {
		if c.Accepted == accepted {
			at = append(at, c.At)
		}
	}
	return at
}

// MostInFlight returns how many calls there were at a time, at most, the refused ones included.
func (s *Server) MostInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}
