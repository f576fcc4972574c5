package pacetest

import (
	"net/http"
	"time"
)

// An Answer is what a [Server] does with one call, instead of asking its limits. The zero Answer has it ask them. A
// call that is answered so costs nothing.
type Answer struct {
	// Refuse has the call refused in the server's dialect, which says that there is room again
	// after that time; 0: it does not say when.
	Refuse bool
	After  time.Duration

	// Status, Header and Body are the answer, if Status is not 0.
	Status int
	Header http.Header
	Body   string

	// Stall is how long the server takes before it does anything else.
	Stall time.Duration
	// Drop has the connection closed without an answer.
	Drop bool
}

// Script has the next calls answered so, one each, in the order in which they arrive. After that the server goes by its
// limits again. Further scripts are added at the end.
//
//	server.Script(pacetest.Answer{}, pacetest.Answer{Refuse: true, After: time.Minute}) // the second call is refused
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, answers...)
}

// Stop has all calls refused for that time from now on, in the server's dialect, which says when it
// ends. The script goes before it.
func (s *Server) Stop(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = s.clock.Now().Add(d)
}

// next returns the answer for the next call. The server must be locked.
func (s *Server) next(now time.Time) Answer {
	if len(s.script) > 0 {
		a := s.script[0]
		s.script = s.script[1:]
		return a
	}
	if now.Before(s.stopped) {
		return Answer{Refuse: true, After: s.stopped.Sub(now)}
	}
	return Answer{}
}
