package reply

import (
	"net/http"
	"strings"
	"time"
)

// readDialects reads the first dialect that the server speaks, and those that have a function for it.
func readDialects(h http.Header, now time.Time, dialects []Dialect, s *Reply) {
	rates, found := false, false // most responses have no such header, and there are many dialects
	for name := range h {
		rates = rates || strings.Contains(name, "Rate")
	}
	for i := range dialects {
		d := &dialects[i]
		switch {
		case d.rates && !rates:
		case d.Read != nil: // of a limit beside others
			d.readLeft(h, s)
		case !found:
			found = d.readAll(h, now, s)
		}
	}
}

// readAll reads what a dialect says of each limit.
func (d *Dialect) readAll(h http.Header, now time.Time, s *Reply) (read bool) {
	if d.names == nil {
		whole := d.Expanded()
		d = &whole
	}
	for i := range d.names {
		read = d.read(h, now, &d.names[i], s) || read
	}
	return read
}

// read reads what a dialect says of a limit.
func (d *Dialect) read(h http.Header, now time.Time, names *names, s *Reply) bool {
	left, leftTold := number(get(h, names.remaining))
	if d.Fill != "" {
		fill, ok := number(get(h, names.fill))
		interval, also := number(get(h, names.interval))
		if !leftTold || !ok || !also || !(fill > 0) || !(interval > 0) {
			return false
		}
		l := s.limit(names.of)
		l.Bucket, l.Left = true, left
		l.allow(fill / interval)
		return true
	}
	if d.Every > 0 || d.Refill > 0 {
		limit, _ := number(get(h, names.limit))
		if leftTold {
			d.left(s, Left{Of: names.of, Permits: left, Limit: limit})
		}
		return leftTold
	}
	last, epoch, ok := reset(get(h, names.reset), now)
	if !ok || last > Longest {
		return false
	}
	if !leftTold {
		if get(h, names.remaining) == "" && epoch && !d.Bucket { // GitHub's 403 for a secondary limit
			s.limit(names.of).Stop = last
			return true
		}
		return false
	}
	l := s.limit(names.of)
	if d.Bucket {
		limit, _ := number(get(h, names.limit))
		l.bucket(limit, left, last)
		return true
	}
	if size, ok := number(get(h, names.limit)); ok {
		l.Size = size
	}
	l.left(left, last, epoch || strings.HasSuffix(d.Reset, "-After"))
	l.Undated = epoch && h.Get("Date") == ""
	return true
}

// readLeft reads what the dialect's function returns.
func (d *Dialect) readLeft(h http.Header, s *Reply) {
	for _, l := range d.Read(h) {
		if l.Permits >= 0 && l.Limit >= 0 && l.Reset >= 0 && l.Reset <= Longest {
			d.left(s, l)
		}
	}
}

// left sets what follows from permits that are left, with the dialect's constants where the server says less.
func (d *Dialect) left(s *Reply, left Left) {
	l := s.limit(left.Of)
	switch {
	case d.Refill > 0:
		l.Bucket, l.Left = true, left.Permits
		l.allow(d.Refill)
	case d.Bucket:
		l.bucket(left.Limit, left.Permits, left.Reset)
	case left.Reset > 0:
		l.left(left.Permits, left.Reset, true)
	default:
		l.Left = left.Permits
		if d.Every > 0 && left.Permits < 1 {
			l.Stop = d.Every
		}
		if d.Every > 0 && d.Every <= widest {
			l.allow(left.Limit / d.Every.Seconds())
		}
	}
}

// bucket sets what follows from a bucket that will be full in that time.
func (l *Limit) bucket(size, left float64, full time.Duration) {
	l.Bucket, l.Left = true, left
	if size <= left || full <= 0 {
		return
	}
	refill := (size - left) / full.Seconds()
	if size/refill > (2 * time.Minute).Seconds() { // a day's bucket that is nearly full is no reason to be slow
		refill += left / 60
	}
	l.allow(refill)
}

// left sets what follows from permits that are left and must last for a time. Window says that this is
// surely the end of a window.
func (l *Limit) left(permits float64, last time.Duration, window bool) {
	if last > Longest {
		return
	}
	if l.Left < 0 || permits < l.Left {
		l.Left = permits
	}
	l.Ends = max(l.Ends, last)
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
		l.allow(permits / last.Seconds())
	}
}

// allow sets the rate; of several the lowest counts.
func (l *Limit) allow(rate float64) {
	if rate > 0 && rate <= fastest && (l.Rate == 0 || rate < l.Rate) {
		l.Rate = rate
	}
}

// reset reads when a window ends: as seconds from now, as a point in time in
// seconds or milliseconds since 1970, as a duration ("6m0s"), or as a date. Of a window that
// has ended already nothing is to be learned.
func reset(v string, now time.Time) (d time.Duration, epoch, ok bool) {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0, false, false
	}
	if n, ok := number(v); ok {
		d, epoch := delayOrEpoch(n, now)
		return d, epoch, d > 0
	}
	if d, err := time.ParseDuration(v); err == nil {
		return d, false, d > 0
	}
	if t, ok := date(v); ok {
		d := until(t, now)
		return d, true, d > 0
	}
	return 0, false, false
}
