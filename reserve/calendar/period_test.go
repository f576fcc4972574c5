package calendar

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

// Places with every kind of change: in summer only, in winter only, by half an hour, over midnight, by decree, with a
// date that was left out, and none.
var zones = []string{
	"UTC", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "America/Asuncion", "America/Santiago",
	"America/Havana", "America/Scoresbysund", "America/Nuuk", "America/St_Johns", "America/Caracas", "America/Bogota",
	"America/Mexico_City", "America/Chihuahua", "America/Ojinaga", "America/Port-au-Prince", "America/Punta_Arenas",
	"America/Dawson", "America/Adak", "America/Miquelon", "Europe/Berlin", "Europe/London", "Europe/Lisbon",
	"Europe/Dublin", "Europe/Moscow", "Europe/Volgograd", "Europe/Istanbul", "Europe/Chisinau", "Europe/Helsinki",
	"Atlantic/Azores", "Atlantic/Reykjavik", "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Juba",
	"Africa/Lagos", "Africa/Johannesburg", "Asia/Amman", "Asia/Beirut", "Asia/Damascus", "Asia/Gaza", "Asia/Hebron",
	"Asia/Jerusalem", "Asia/Tehran", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Almaty", "Asia/Qostanay", "Asia/Tokyo",
	"Asia/Shanghai", "Asia/Pyongyang", "Australia/Lord_Howe", "Australia/Sydney", "Australia/Adelaide",
	"Australia/Eucla", "Antarctica/Troll", "Antarctica/Casey", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham",
	"Pacific/Fiji", "Pacific/Norfolk", "Pacific/Kiritimati", "Pacific/Easter",
}

func load(t *testing.T, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// changes returns when the clocks are changed in a place, from 2020 to 2035.
func changes(loc *time.Location) (all []time.Time) {
	for t := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).In(loc); ; {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Year() > 2035 {
			return all
		}
		all, t = append(all, end), end
	}
}

// number tells by the clock and the calendar on the wall alone which period it is.
func (p Period) number(t time.Time) int {
	l := t.In(p.loc)
	y, m, d := l.Date()
	days := int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	clock := time.Duration(l.Hour())*time.Hour + time.Duration(l.Minute())*time.Minute
	switch p.kind {
	case monthly:
		last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if d >= p.day || d == last {
			m++
		}
		return y*12 + int(m)
	case weekly:
		if clock < p.at {
			days--
		}
		return (days + 4 - int(p.weekday) + 7000000) / 7 // 1970-01-01 was a Thursday
	default:
		if clock < p.at {
			days--
		}
		return days
	}
}

// Around each change of the clocks, minute by minute: a period begins when the wall shows a period that it has not
// shown before, and at no other time.
func TestPeriodsAgainstTheWall(t *testing.T) {
	changed := 0
	for i, name := range zones {
		loc := load(t, name)
		periods := []Period{
			Daily(loc, 0), Daily(loc, 2*time.Hour+30*time.Minute), Weekly(loc, time.Sunday, time.Hour), Monthly(loc, 31),
		}
		moments := changes(loc)
		changed += len(moments)
		if len(moments) == 0 || testing.Short() {
			moments = append(moments[:min(3, len(moments))], time.Date(2024, 2, 29, 12, 0, 0, 0, loc))
		}
		for j, change := range moments {
			p := periods[(i+j)%len(periods)]
			if j%2 == 0 {
				p = periods[0]
			}
			t0 := change.Add(-50 * time.Hour).Truncate(15 * time.Minute)
			shown, begins := p.number(t0), int64(0)
			for u := t0; u.Before(change.Add(50 * time.Hour)); u = u.Add(time.Minute) {
				if u.Minute()%15 != 0 && u.Sub(change).Abs() > 4*time.Hour {
					continue // elsewhere nothing happens between quarters
				}
				if n := p.number(u); n > shown {
					shown, begins = n, u.UnixNano()
					require.Equal(t, begins, p.around(u.UnixNano()).begin, "%v at %v", p, u)
					require.Equal(t, begins, p.around(u.UnixNano()-1).end, "%v before %v", p, u)
				} else if begins != 0 && u.Minute() == 15 {
					require.Equal(t, begins, p.around(u.UnixNano()).begin, "%v at %v", p, u)
				}
			}
		}
	}
	require.Greater(t, changed, 900)
}

func TestPeriods(t *testing.T) {
	berlin, apia := load(t, "Europe/Berlin"), load(t, "Pacific/Apia")
	date := func(loc *time.Location, y int, m time.Month, d, h, min int) time.Time {
		return time.Date(y, m, d, h, min, 0, 0, loc)
	}
	for _, c := range []struct {
		name       string
		per        Period
		at         time.Time
		begin, end time.Time
	}{
		{"a day", Daily(time.UTC, 0), date(time.UTC, 2026, 11, 22, 10, 0), date(time.UTC, 2026, 11, 22, 0, 0), date(time.UTC, 2026, 11, 23, 0, 0)},
		{"its last moment", Daily(time.UTC, 0), date(time.UTC, 2026, 11, 23, 0, 0).Add(-1), date(time.UTC, 2026, 11, 22, 0, 0), date(time.UTC, 2026, 11, 23, 0, 0)},
		{"23 hours", Daily(berlin, 0), date(berlin, 2026, 3, 29, 12, 0), date(time.UTC, 2026, 3, 28, 23, 0), date(time.UTC, 2026, 3, 29, 22, 0)},
		{"25 hours", Daily(berlin, 0), date(berlin, 2026, 10, 25, 12, 0), date(time.UTC, 2026, 10, 24, 22, 0), date(time.UTC, 2026, 10, 25, 23, 0)},
		{"at a time that is left out", Daily(berlin, 150*time.Minute), date(berlin, 2026, 3, 29, 12, 0), date(time.UTC, 2026, 3, 29, 1, 0), date(time.UTC, 2026, 3, 30, 0, 30)},
		{"at a time that comes twice", Daily(berlin, 150*time.Minute), date(berlin, 2026, 10, 25, 12, 0), date(time.UTC, 2026, 10, 25, 0, 30), date(time.UTC, 2026, 10, 26, 1, 30)},
		{"a date that was left out", Daily(apia, 0), date(apia, 2011, 12, 31, 12, 0), date(time.UTC, 2011, 12, 30, 10, 0), date(time.UTC, 2011, 12, 31, 10, 0)},
		{"the day before it", Daily(apia, 0), date(apia, 2011, 12, 29, 12, 0), date(time.UTC, 2011, 12, 29, 10, 0), date(time.UTC, 2011, 12, 30, 10, 0)},
		{"a week", Weekly(time.UTC, time.Monday, 9*time.Hour), date(time.UTC, 2026, 11, 23, 8, 59), date(time.UTC, 2026, 11, 16, 9, 0), date(time.UTC, 2026, 11, 23, 9, 0)},
		{"a month from the 31st", Monthly(time.UTC, 31), date(time.UTC, 2026, 2, 28, 0, 0), date(time.UTC, 2026, 2, 28, 0, 0), date(time.UTC, 2026, 3, 31, 0, 0)},
		{"in a leap year", Monthly(time.UTC, 31), date(time.UTC, 2028, 2, 28, 23, 0), date(time.UTC, 2028, 1, 31, 0, 0), date(time.UTC, 2028, 2, 29, 0, 0)},
		{"a month", Monthly(time.UTC, 1), date(time.UTC, 2026, 12, 31, 23, 0), date(time.UTC, 2026, 12, 1, 0, 0), date(time.UTC, 2027, 1, 1, 0, 0)},
		{"an hour", Every(time.Hour), date(time.UTC, 2026, 11, 22, 10, 1), date(time.UTC, 2026, 11, 22, 10, 0), date(time.UTC, 2026, 11, 22, 11, 0)},
		{"before 1970", Every(time.Hour), date(time.UTC, 1969, 12, 31, 23, 1), date(time.UTC, 1969, 12, 31, 23, 0), date(time.UTC, 1970, 1, 1, 0, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.per.around(c.at.UnixNano())
			require.Equal(t, c.begin, time.Unix(0, s.begin).UTC())
			require.Equal(t, c.end, time.Unix(0, s.end).UTC())
		})
	}
}

// The longest period holds each moment, too.
func TestEveryLongest(t *testing.T) {
	for _, at := range []int64{1_790_000_000e9, 1, 0, -1} {
		s := Every(math.MaxInt64).around(at)
		require.True(t, s.begin <= at && at < s.end, "%d is not in %v", at, s)
	}
}

// Time.ZoneBounds is wrong on the last day of a leap year, as of the last one that a zone's file lists (golang/go#81583).
func TestEndOfALeapYear(t *testing.T) {
	for _, place := range []string{"America/Los_Angeles", "Europe/Berlin", "Australia/Sydney", "Asia/Tokyo"} {
		loc, err := time.LoadLocation(place)
		require.NoError(t, err)
		for year := 2027; year < 2062; year++ {
			for day := range 4 {
				begin := time.Date(year, 12, 29+day, 0, 0, 0, 0, loc)
				for _, now := range []time.Time{begin, begin.Add(12 * time.Hour), begin.Add(24*time.Hour - 1)} {
					got := Daily(loc, 0).around(now.UnixNano())
					require.Equal(t, span{begin.UnixNano(), begin.AddDate(0, 0, 1).UnixNano()}, got, now)
				}
			}
		}
	}
}
