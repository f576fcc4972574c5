package pacetest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Server is an http.Handler that limits its callers, and remembers all calls. All methods may be called
// concurrently.
type Server struct {
	settings // the limits are guarded by mu

	mu       sync.Mutex
	script   []Answer
	stopped  time.Time // all calls are refused until then
	calls    []Call
	inFlight int
	most     int
}

type limit struct {
	name string
	cost func(*http.Request) int
	rule
}

type Call struct {
	At       time.Time     // when it was let in or refused: when it arrived, and its Stall was over
	Request  *http.Request // its body is not there any more
	Accepted bool          // it was let in
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := s.enter()
	defer s.leave()
	if answer.Stall > 0 {
		select {
		case <-time.After(answer.Stall):
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

func (s *Server) enter() Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	return s.next(time.Now())
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}

// decide returns no charge if the limits were not asked. A refusal's body becomes the answer's.
func (s *Server) decide(h http.Header, r *http.Request, a *Answer) (c *charge, accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if a.Drop || a.Status != 0 {
		accepted = !a.Drop && !a.Refuse && a.Status < http.StatusBadRequest
		for name, values := range a.Header {
			h[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	} else {
		c, accepted = s.ask(h, r, a, now)
	}
	s.calls = append(s.calls, Call{At: now, Request: r, Accepted: accepted})
	return c, accepted
}

func (s *Server) ask(h http.Header, r *http.Request, a *Answer, now time.Time) (c *charge, accepted bool) {
	states, costs := make([]State, len(s.limits)), make([]int, len(s.limits))
	worst := 0 // the limit that refuses for the longest time
	for i, l := range s.limits {
		costs[i] = max(0, l.cost(r))
		states[i] = l.look(now, costs[i], costs[i])
		if state := &states[i]; state.Refused && (!states[worst].Refused || state.Wait > states[worst].Wait) {
			worst = i
		}
	}
	w := &states[worst]
	if a.Refuse {
		w.Refused, w.Limit, w.Left, w.Wait, w.Next = true, max(1, w.Limit), 0, a.After, a.After
	}
	if !w.Refused {
		c = &charge{server: s, at: now, costs: costs}
		for i, l := range s.limits {
			l.take(now, now, costs[i])
			states[i] = l.look(now, 0, costs[i])
		}
	}
	for i := range states {
		s.dialect.write(h, now, states[i])
	}
	if c == nil {
		a.Body = s.dialect.refuse(h, *w)
	}
	return c, c != nil
}

func (l *limit) look(now time.Time, n, cost int) State {
	state := l.state(now, n)
	state.Name, state.Cost = l.name, cost
	return state
}

func (s *Server) done(c *charge) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range c.costs {
		if f, ok := s.limits[i].rule.(*inFlight); ok {
			f.busy -= n
		}
	}
	c.costs = nil
}

// Calls returns all calls so far, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Accepted returns when calls were let in.
func (s *Server) Accepted() []time.Time { return s.times(true) }

// Refused returns when calls were refused or dropped.
func (s *Server) Refused() []time.Time { return s.times(false) }

func (s *Server) times(accepted bool) (at []time.Time) {
	for _, c := range s.Calls() {
		if c.Accepted == accepted {
			at = append(at, c.At)
		}
	}
	return at
}

// MostInFlight returns the largest number of calls at a time, refused calls included.
func (s *Server) MostInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}
