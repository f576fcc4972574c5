package pacetest

import (
	"net/http"
	"time"
)

// An Answer is what a [Server] does with a call, at no cost. The zero Answer asks the limits.
type Answer struct {
	// Refuse refuses the call in the server's dialect, with room again after After; 0: it says no time.
	Refuse bool
	After  time.Duration

	// Status, if not 0, Header and Body are the answer.
	Status int
	Header http.Header
	Body   string

	// Stall is how long the server waits first.
	Stall time.Duration
	// Drop closes the connection without an answer.
	Drop bool
}

// Script sets the answers to the next calls, in order; then the limits are asked again. Scripts add up.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, answers...)
}

// Stop refuses all calls that have no script for d from now, and the refusals say so.
func (s *Server) Stop(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = time.Now().Add(d)
}

// next needs the server's lock.
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
