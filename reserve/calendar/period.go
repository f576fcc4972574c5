package calendar

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A Period says when a quota begins anew. The zero Period is an error in [New] and [Policy].
//
// A period begins when the clocks in its place first show its beginning or a later time. If they show it twice, it is
// the first of the two.
type Period struct {
	kind    kind
	loc     *time.Location
	at      time.Duration // of the day
	weekday time.Weekday
	day     int           // of the month
	length  time.Duration // of every and fromFirst
}

type kind uint8

const (
	none kind = iota
	daily
	weekly
	monthly
	every
	fromFirst
)

// Daily returns periods that begin each day at a time of day (0 to under 24 h) in a place. YouTube's quota is
// Daily(losAngeles, 0).
func Daily(loc *time.Location, at time.Duration) Period { return Period{kind: daily, loc: loc, at: at} }

// Weekly returns periods that begin on a day of the week, at a time of day (0 to under 24 h), in a place.
func Weekly(loc *time.Location, day time.Weekday, at time.Duration) Period {
	return Period{kind: weekly, loc: loc, weekday: day, at: at}
}

// Monthly returns periods that begin at midnight of a day of the month (1 to 31) in a place, in a shorter month of its
// last day.
func Monthly(loc *time.Location, day int) Period { return Period{kind: monthly, loc: loc, day: day} }

// Every returns the periods of length d aligned to the Unix epoch, 1970-01-01 00:00 UTC: Every(time.Hour) begins at
// each full hour of UTC.
func Every(d time.Duration) Period { return Period{kind: every, length: d} }

// FromFirst returns periods of length d, each of which begins with the first request granted after the last: GitHub's
// hour, a language model's five hours.
func FromFirst(d time.Duration) Period { return Period{kind: fromFirst, length: d} }

func (p Period) String() string {
	switch p.kind {
	case daily:
		return fmt.Sprintf("calendar.Daily(%v, %v)", p.loc, p.at)
	case weekly:
		return fmt.Sprintf("calendar.Weekly(%v, %v, %v)", p.loc, p.weekday, p.at)
	case monthly:
		return fmt.Sprintf("calendar.Monthly(%v, %d)", p.loc, p.day)
	case every:
		return fmt.Sprintf("calendar.Every(%v)", p.length)
	case fromFirst:
		return fmt.Sprintf("calendar.FromFirst(%v)", p.length)
	default:
		return "calendar.Period{}"
	}
}

func (p Period) check() error {
	switch {
	case p.kind == none:
		return valueError("per", p, "a Period of Daily, Weekly, Monthly, Every or FromFirst")
	case p.kind <= monthly && p.loc == nil:
		return valueError("loc", nil, "a location, time.UTC for one")
	case p.at < 0 || p.at >= 24*time.Hour:
		return valueError("at", p.at, "a time of day, 0 to under 24 h")
	case p.kind == weekly && (p.weekday < time.Sunday || p.weekday > time.Saturday):
		return valueError("day", int(p.weekday), "a day of the week")
	case p.kind == monthly && (p.day < 1 || p.day > 31):
		return valueError("day", p.day, "1 to 31")
	case p.kind >= every && p.length < time.Microsecond: // as of Every(60), which means 60 ns
		return valueError("d", p.length, "at least a microsecond, as in 60*time.Second")
	}
	return nil
}

// nominal returns the usual length: a month's is a twelfth of the Gregorian mean year.
func (p Period) nominal() time.Duration {
	switch p.kind {
	case daily:
		return 24 * time.Hour
	case weekly:
		return 7 * 24 * time.Hour
	case monthly:
		return 146097 * (24 * time.Hour / 4800) // of 400 years
	default:
		return p.length
	}
}

// A span is a period from begin to before end, in nanoseconds of Unix time.
type span struct{ begin, end int64 }

// around is not for FromFirst, whose periods depend on the requests.
func (p Period) around(t int64) span {
	if p.kind == every {
		d := int64(p.length)
		into := t % d
		if into < 0 {
			into += d
		}
		begin := saturate.Add(t, -into)
		return span{begin, saturate.Add(begin, d)}
	}
	return span{p.nth(t, 0), p.nth(t, 1)}
}

// nth returns when the n-th period after that of t begins; never, if that is beyond the year 2262. At [Every] and
// FromFirst, a period begins at t.
func (p Period) nth(t, n int64) int64 {
	if p.kind >= every {
		if d := int64(p.length); n < (never-max(t, 0))/d {
			return t + n*d
		}
		return never
	}
	y, m, d := time.Unix(0, t).In(p.loc).Date()
	i := 0 // periods from the date's to that of t
	for p.begin(y, m, d, i) > t {
		i--
	}
	for end := p.begin(y, m, d, i+1); end <= t && end < never; end = p.begin(y, m, d, i+1) {
		i++
	}
	return p.begin(y, m, d, i+int(min(n, centuries)))
}

// passed returns how many periods, the first of which begins at from, are over at t, at most most.
func (p Period) passed(from, t, most int64) int64 {
	if p.kind >= every {
		return min(most, (t-from)/int64(p.length))
	}
	return int64(sort.Search(int(min(most, centuries)), func(n int) bool { return p.nth(from, int64(n)+1) > t }))
}

const centuries = 100_000 // days: more than there are until 2262

func (p Period) begin(y int, m time.Month, d, i int) int64 {
	switch p.kind {
	case weekly:
		back := (int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()) - int(p.weekday) + 7) % 7
		d += 7*i - back
	case monthly:
		m += time.Month(i)
		last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
		d = min(p.day, last)
	default:
		d += i
	}
	return first(p.loc, time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Add(p.at))
}

// first returns when a place's clocks first show a time (given as UTC) or a later one.
func first(loc *time.Location, shown time.Time) int64 {
	// No place is more than 26 hours off UTC. From there on, zone by zone.
	for t := shown.Add(-26 * time.Hour).In(loc); ; {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		at := shown.Add(-time.Duration(offset) * time.Second)
		if at.Before(t) {
			at = t // the clocks are set forward, over it
		}
		if !end.IsZero() && !end.After(t) { // golang/go#81583: on the last day of a leap year
			end = t.Add(24 * time.Hour)
		}
		if end.IsZero() || at.Before(end) {
			return unix(at)
		}
		t = end
	}
}

// unix returns nanoseconds since 1970. It saturates beyond the years 1678 to 2262.
func unix(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	default:
		return t.UnixNano()
	}
}
