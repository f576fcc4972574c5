// Package reply reads what a response says about the server's limits: its status, its headers, and the body of a
// refusal.
package reply

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// A Reply is what a response says. The zero value says nothing.
type Reply struct {
	Status  int
	Refused bool          // there were too many requests
	Final   bool          // no retry can mend it
	After   time.Duration // for how long the server wants no other request, if Told
	Told    bool
	Undated bool          // After is until a point in time, and there is no Date to check the local clock
	Penalty time.Duration // the same, as the server documents it; 0: not known
	Key     Key           // which calls share the limits; zero: not told
	Whole   bool          // the refusal concerns all calls
	Reason  string        // the name of the limit that refused; "": not told
	Empty   bool          // the server says that nothing is left, and not until when
	NotRate bool          // the refusal is not about the rate: too many calls at a time, or a lock
	Cached  bool          // all else is zero
	Limits  []Limit
}

// A Key names the calls that share a limit.
type Key struct {
	Name string // in the server's words: "core", "search"
	Each bool   // the limit is per [Resource]
}

// A Limit is what a server says of one limit.
type Limit struct {
	Name string  // "requests", "tokens"; "": not told
	Left float64 // -1: not told
	Size float64 // 0: not told
	Rate float64 // allowed per second; 0: not told
	// Spread: Rate is what is left of a window, spread over its rest.
	Spread bool
	Stop   time.Duration // for how long nothing is left
	Short  bool          // nothing is left, for too short a time to stop
	Ends   time.Duration // until the window's end; 0: not told, or a bucket
	// Undated: the window's end is a point in time, and there is no Date to check the local clock.
	Undated bool
	Bucket  bool // Left grows at Rate
}

// Ahead corrects the end of a window for a server whose clock is ahead.
func (l *Limit) Ahead(by time.Duration) {
	left, last := l.Left, l.Ends-by
	*l = Limit{Name: l.Name, Left: left, Undated: l.Undated, Short: left == 0}
	if last > 0 {
		l.Short = false
		l.left(left, last, true)
	}
}

// Wants returns for how long a bucket has too little for a request of that cost.
func (l *Limit) Wants(cost float64) time.Duration {
	if !l.Bucket || l.Rate <= 0 || l.Left < 0 || l.Left >= cost {
		return 0
	}
	return times((cost-l.Left)/l.Rate, time.Second)
}

// HasRoom reports whether something is left of each limit.
func (s *Reply) HasRoom() bool {
	full := func(l Limit) bool { return l.Left < 1 || l.Stop > 0 || l.Short }
	return len(s.Limits) > 0 && !slices.ContainsFunc(s.Limits, full)
}

// cause reads which limit a response speaks of, why a refusal was, and whom it concerns.
func (r *Reader) cause(h http.Header, s *Reply) {
	s.Final = s.Final || get(h, "X-Should-Retry") == "false" || get(h, "Stripe-Should-Retry") == "false"
	for i := range r.dialects {
		d := &r.dialects[i]
		if name := get(h, d.Key); name != "" && s.Key.Name == "" {
			s.Key = Key{cut(name), d.each}
		}
		scope := get(h, d.Whole)
		s.Whole = s.Whole || scope == "true" || scope == "global"
		s.Reason = cmp.Or(s.Reason, get(h, d.Reason))
	}
}

func (r *Reader) limits(h http.Header, clock clock, s *Reply) {
	if !readDraft(h, s) {
		r.readDialects(h, clock, s)
	}
}

// Refuses reports whether a status alone refuses.
func Refuses(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == 529
}

// refused reports whether the status refuses, or GitHub's 403: with Retry-After, nothing left, or only a reset.
func refused(r *http.Response, s *Reply) bool {
	if r.StatusCode != http.StatusForbidden {
		return Refuses(r.StatusCode)
	}
	return s.Told || get(r.Header, "Retry-After") != "" || s.Empty || s.NotRate ||
		slices.ContainsFunc(s.Limits, func(l Limit) bool { return l.Stop > 0 || l.Short })
}

func (s *Reply) limit(name string) *Limit {
	for i := range s.Limits {
		if s.Limits[i].Name == name {
			return &s.Limits[i]
		}
	}
	s.Limits = append(s.Limits, Limit{Name: name, Left: -1})
	return &s.Limits[len(s.Limits)-1]
}
