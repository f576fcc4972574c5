package reply

import (
	"net/http"
	"strings"
	"time"
)

// readDialects reads the first dialect that the server speaks, and those with a Read function.
func (r *Reader) readDialects(h http.Header, clock clock, s *Reply) {
	found := false
	for i := range r.dialects {
		d := &r.dialects[i]
		switch {
		case d.needs != "" && len(h[d.needs]) == 0:
		case d.Read != nil:
			for _, l := range d.Read(h, clock.now()) {
				d.left(s, l)
			}
		case !found:
			found = d.readAll(h, clock, s)
		}
	}
}

func (d *Dialect) readAll(h http.Header, clock clock, s *Reply) (found bool) {
	for i := range d.names {
		if of := &d.names[i]; len(h[of.remaining]) > 0 || len(h[of.reset]) > 0 {
			found = d.read(h, clock, of, s) || found
		}
	}
	return found
}

func (d *Dialect) read(h http.Header, clock clock, names *names, s *Reply) (found bool) {
	all := func(name string) string { return strings.Join(h[name], ",") } // of several lines
	remaining, limit, reset := all(names.remaining), all(names.limit), all(names.reset)
	for more := true; more; { // Brave's of a second and a month: "1, 15000"
		var n, of, then string
		n, remaining, more = strings.Cut(remaining, ",")
		of, limit, _ = strings.Cut(limit, ",")
		if then = reset; more && strings.Contains(reset, ",") {
			then, reset, _ = strings.Cut(reset, ",")
		}
		n, _, _ = strings.Cut(n, ";") // Docker Hub's "76;w=21600"
		found = d.one(n, of, then, clock, names.of, s) || found
	}
	return found
}

func (d *Dialect) one(remaining, limit, reset string, clock clock, name string, s *Reply) bool {
	left, told := number(remaining)
	size, sized := number(limit)
	if told && (d.Every > 0 || d.Refill > 0) {
		d.left(s, Left{Of: name, Permits: left, Limit: size})
		return true
	}
	last, epoch, ok := untilThen(reset, clock)
	ok = ok && last > 0 && last <= Longest
	none, alone := !d.Bucket && told && left < 1, !d.Bucket && remaining == "" && s.alone(epoch)
	switch {
	case none && sized && size == 0: // Okta's limit on calls at a time
		s.NotRate = !s.Told
	case !ok:
		s.Empty = s.Empty || none || alone && epoch
	case alone:
		s.limit(name).Stop = last
		return true
	case told && d.Bucket:
		if epoch { // a whole second, like Date: while little is used, the rate would come out far too low
			last -= time.Second
		}
		s.limit(name).bucket(size, left, last)
		return true
	case told:
		l := s.limit(name)
		l.left(left, last, epoch || strings.HasSuffix(d.Reset, "-After"))
		l.Size, l.Undated = size, epoch && get(clock.of, "Date") == ""
		return true
	}
	return false
}

// alone reports whether a reset alone says that nothing is left: in a refusal, and in GitHub's 403.
func (s *Reply) alone(epoch bool) bool {
	return Refuses(s.Status) || epoch && s.Status == http.StatusForbidden
}

func (d *Dialect) left(s *Reply, left Left) {
	if !(left.Permits >= 0 && left.Limit >= 0 && left.Reset >= 0) {
		return
	}
	if left.Reset > Longest {
		s.Empty = s.Empty || left.Permits < 1
		return
	}
	l := s.limit(left.Of)
	switch rate := max(d.Refill, left.Rate); {
	case rate > 0:
		l.Bucket, l.Left = true, left.Permits
		l.allow(rate)
	case d.Bucket:
		l.bucket(left.Limit, left.Permits, left.Reset)
	case left.Reset > 0:
		l.left(left.Permits, left.Reset, true)
	default:
		l.Left = left.Permits
		s.Empty = s.Empty || d.Every <= 0 && left.Permits < 1
		if d.Every > 0 && left.Permits < 1 {
			l.Stop = d.Every
		}
		if d.Every > 0 && d.Every <= widest {
			l.allow(left.Limit / d.Every.Seconds())
		}
	}
}

func (l *Limit) bucket(size, left float64, full time.Duration) {
	l.Bucket, l.Left = true, left
	if size <= left || full <= 0 {
		return
	}
	refill := (size - left) / full.Seconds()
	if size/refill > (2 * time.Minute).Seconds() { // spend a nearly full day's bucket
		refill += left / 60
	}
	l.allow(refill)
}

// left sets what follows from permits that must last until a window ends or, if not window, perhaps until a bucket is
// full.
func (l *Limit) left(permits float64, last time.Duration, window bool) {
	if last > Longest {
		return
	}
	if l.Left < 0 || permits < l.Left || permits == l.Left && last > l.Ends { // of several windows
		l.Left, l.Ends = permits, last
	}
	least := shortest
	if window {
		least = narrowest
	}
	switch {
	case permits == 0 && (window || last > shortest):
		l.Stop = max(l.Stop, last)
	case permits == 0:
		l.Short = true
	case last > least && last <= widest:
		l.Spread = window && l.Rate == 0
		l.allow(permits / last.Seconds())
	}
}

func (l *Limit) allow(rate float64) {
	if rate > 0 && rate <= fastest && (l.Rate == 0 || rate < l.Rate) {
		l.Rate = rate
	}
}
