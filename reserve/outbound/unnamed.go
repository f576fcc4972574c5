package outbound

import (
	"fmt"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// unnamed names a limit by its size, and by its window if those of two paths end at different times. Another limit may
// have caused a refusal.
func (l *lesson) unnamed(n *names, s *reply.Reply) (of route) {
	if s.Refused || len(s.Limits) != 1 || s.Limits[0].Name != "" || s.Limits[0].Bucket || s.Limits[0].Size < 1 {
		return of
	}
	size, heard := s.Limits[0].Size, l.of.heard
	var room [maxRoutes]uint64
	hashes := routesOf(l.of.way.subject, room[:0])
	before, _ := l.of.t.learned.routes.Get(hashes[len(hashes)-1])
	of = route{window: before.window, ends: heard.Add(s.Limits[0].Ends), said: heard}
	switch {
	case sameEnd(of.ends, before.ends):
		of.ends, of.said = before.ends, before.said
	case before.ends.After(heard.Add(offBy)):
		n.rolling = true
	}
	ends, known := n.windows[size]
	if !known && len(n.windows) >= maxNames {
		return of
	}
	if n.rolling || of.window >= len(ends) {
		of.window = 0
	}
	if !n.rolling && heard.Sub(of.said) > steady && len(ends) < maxNames {
		of.window, ends = windowOf(ends, of, heard)
	}
	n.windows[size] = ends
	if len(n.windows) > 1 || len(ends) > 1 {
		of.key.Name = fmt.Sprintf("limit of %g", size)
		if of.window > 0 {
			of.key.Name += fmt.Sprintf(", window %d", of.window+1)
		}
	}
	return of
}

// windowOf returns the window of a path: the same as before, unless that ends at another time.
func windowOf(ends []time.Time, of route, heard time.Time) (int, []time.Time) {
	if len(ends) == 0 {
		return 0, append(ends, of.ends)
	}
	if sameEnd(ends[of.window], of.ends) {
		return of.window, ends
	}
	if !ends[of.window].After(heard) {
		ends[of.window] = of.ends
		return of.window, ends
	}
	if i := slices.IndexFunc(ends, func(end time.Time) bool { return sameEnd(end, of.ends) }); i >= 0 {
		return i, ends
	}
	return len(ends), append(ends, of.ends)
}

func sameEnd(a, b time.Time) bool { return a.Sub(b).Abs() < offBy }
