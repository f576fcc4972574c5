// Package reply reads what a response says about the server's limits: its status, its headers, and
// the body of a refusal. It is pure: it knows no limiter and no clock.
package reply

import (
	"net/http"
	"time"
)

// A Reply is what a response says. The zero value says nothing.
type Reply struct {
	Status int
	// Refused says that there were too many requests; Final, that sending it again is of no use: a
	// quota for the day, or for money.
	Refused, Final bool
	// After is how long the server wants no other request, if Told.
	After time.Duration
	Told  bool
	// Key is which calls share the limits of which the server says something; zero: it does not say.
	Key Key
	// Whole says that a refusal concerns all calls to the server, whatever limit they share.
	Whole bool
	// Reason is the name of the limit that has refused; "": it does not say which.
	Reason string
	// Cached says that a cache has answered: all else is zero.
	Cached bool
	// Limits are the limits of which the server says something.
	Limits []Limit
}

// A Key names the calls that share a limit.
type Key struct {
	Name string // in the server's words: "core", "search"
	// Each says that the limit is not one for all calls with that name, but one for each of Discord's
	// channels, guilds and webhooks: see [Resource].
	Each bool
}

// A Limit is what a server says of one of its limits.
type Limit struct {
	Name string  // "requests", "tokens"; "": it does not say of what
	Left float64 // what is left; -1: it does not say
	Size float64 // of so many; 0: it does not say
	// Rate is what the server allows, per second; 0: it does not say.
	Rate float64
	// Stop is for how long nothing is left; 0: something is, or it does not say.
	Stop time.Duration
	// Short says that nothing is left for a moment, too short to stop for.
	Short bool
	// Ends is when the window ends that Left is of; 0: it does not say, or it is a bucket.
	Ends time.Duration
	// Undated says that the end was given as a point in time by a server that does not tell its own time: if the local
	// clock is wrong, so is Ends.
	Undated bool
	// Bucket says that what is left grows steadily, at Rate, and not at the end of a window.
	Bucket bool
}

// Ahead corrects what follows from the end of a window, for a server whose clock is ahead of the local one.
func (l *Limit) Ahead(by time.Duration) {
	left, last := l.Left, l.Ends-by
	*l = Limit{Name: l.Name, Left: left, Undated: l.Undated, Short: left == 0}
	if last > 0 {
		l.Short = false
		l.left(left, last, true)
	}
}

// Wants returns for how long, of a bucket, a request of that cost is too much.
func (l *Limit) Wants(cost float64) time.Duration {
	if !l.Bucket || l.Rate <= 0 || l.Left < 0 || l.Left >= cost {
		return 0
	}
	return times((cost-l.Left)/l.Rate, time.Second)
}

// HasRoom reports whether the server says that something is left of each limit that it tells of.
func (s *Reply) HasRoom() bool {
	for i := range s.Limits {
		if l := &s.Limits[i]; l.Left < 1 || l.Stop > 0 || l.Short {
			return false
		}
	}
	return len(s.Limits) > 0
}

// Read reads a response that was received at the given time. Malformed headers are ignored, and a
// response from a cache says nothing about the server. It may read the body, and puts back what it has
// read.
func Read(r *http.Response, received time.Time, dialects []Dialect) (s Reply) {
	if cached(r.Header) {
		return Reply{Cached: true}
	}
	s.Status = r.StatusCode
	now := serverTime(r.Header, received)
	s.After, s.Told = readRetryAfter(r.Header, now)
	if !readDraft(r.Header, &s) {
		readDialects(r.Header, now, dialects, &s)
	}
	s.Final = r.Header.Get("X-Should-Retry") == "false" || r.Header.Get("Stripe-Should-Retry") == "false"
	s.Refused = refused(r, &s)
	body := body{of: r}
	if sign := body.sign(dialects); sign != nil {
		s.Refused, s.Final = true, s.Final || sign.Final
	}
	if s.Refused || r.StatusCode == http.StatusForbidden || body.throttles(dialects) {
		body.read(dialects, &s)
	}
	if s.Key.Name == "" {
		s.Key = readKey(r.Header, dialects)
	}
	if s.Refused {
		s.Reason = readReason(r.Header, dialects)
		s.Whole = s.Whole || readWhole(r.Header, dialects)
	} else {
		s.Final = false
	}
	return s
}

// refused reports whether a response says that there were too many requests: 429, 503, 529; and 403
// with Retry-After, with nothing left, or with nothing but the time of a reset, which are GitHub's
// ways.
func refused(r *http.Response, s *Reply) bool {
	switch r.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		return true
	case http.StatusForbidden:
		if s.Told {
			return true
		}
		for _, l := range s.Limits {
			if l.Stop > 0 || l.Short {
				return true
			}
		}
	}
	return false
}

// limit returns the limit with that name, which is added if it is new.
func (s *Reply) limit(name string) *Limit {
	for i := range s.Limits {
		if s.Limits[i].Name == name {
			return &s.Limits[i]
		}
	}
	s.Limits = append(s.Limits, Limit{Name: name, Left: -1})
	return &s.Limits[len(s.Limits)-1]
}
