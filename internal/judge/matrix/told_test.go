package matrix

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// A written limit is n calls in per. How the server counts is not documented.
type written struct {
	n     int
	per   time.Duration
	calls int
	short bool // plays without PACE_LONG, too
}

func (d written) String() string { return fmt.Sprintf("%d in %v", d.n, d.per) }

func (d written) rate() float64 { return float64(d.n) / d.per.Seconds() }

var writtenDown = []written{
	{n: 50, per: time.Second, calls: 600, short: true},
	{n: 5, per: time.Second, calls: 150},
	{n: 100, per: time.Minute, calls: 400},
	{n: 20, per: time.Second, calls: 300},
	{n: 200, per: time.Second, calls: 2400},
	{n: 30, per: 10 * time.Second, calls: 150},
	{n: 500, per: time.Second, calls: 6000},
}

// A counting is a way in which servers count: take counts a call or refuses it, and wait says until when.
type counting struct {
	name  string
	burst func(d written) float64 // calls at once
	count func(begin time.Time, d written) (take func(now time.Time) bool, wait func(now time.Time) time.Duration)

	windows bool
}

func everything(d written) float64 { return float64(d.n) }

func countsInBucket(name string, size func(d written) float64) counting {
	return counting{name: name, burst: size, count: func(begin time.Time, d written) (func(time.Time) bool, func(time.Time) time.Duration) {
		b := fullBucket(begin, d.rate(), size(d))
		return func(now time.Time) bool { return b.take(now, 1) }, func(time.Time) time.Duration {
			return time.Duration((1 - b.level) / b.rate * float64(time.Second))
		}
	}}
}

var countings = []counting{
	countsInBucket("a bucket of 1", func(written) float64 { return 1.5 }), // a little room for jitter
	countsInBucket("a bucket of a fifth", func(d written) float64 { return max(2, float64(d.n)/5) }),
	countsInBucket("a bucket of all", everything),
	{name: "fixed windows", windows: true, burst: everything, count: func(begin time.Time, d written) (func(time.Time) bool, func(time.Time) time.Duration) {
		end, left := begin, 0
		return func(now time.Time) bool {
				if !now.Before(end) {
					end, left = now.Truncate(d.per).Add(d.per), d.n
				}
				left--
				return left >= 0
			}, func(now time.Time) time.Duration {
				return end.Sub(now)
			}
	}},
	{name: "a rolling window", windows: true, burst: everything, count: func(_ time.Time, d written) (func(time.Time) bool, func(time.Time) time.Duration) {
		var log []time.Time
		return func(now time.Time) bool {
				for len(log) > 0 && now.Sub(log[0]) >= d.per {
					log = log[1:]
				}
				if len(log) >= d.n {
					return false
				}
				log = append(log, now)
				return true
			}, func(now time.Time) time.Duration {
				return log[0].Add(d.per).Sub(now)
			}
	}},
	// Cloudflare's and Kong's: what remains of the last window counts as if it had come evenly.
	{name: "a sliding counter", windows: true, burst: everything, count: func(_ time.Time, d written) (func(time.Time) bool, func(time.Time) time.Duration) {
		var from time.Time
		last, now := 0., 0.
		return func(at time.Time) bool {
				begin := at.Truncate(d.per)
				switch begin.Sub(from) {
				case 0:
				case d.per:
					from, last, now = begin, now, 0
				default:
					from, last, now = begin, 0, 0
				}
				if last*(1-at.Sub(from).Seconds()/d.per.Seconds())+now >= float64(d.n) {
					return false
				}
				now++
				return true
			}, func(at time.Time) time.Duration {
				return from.Add(d.per).Sub(at)
			}
	}},
}

func (s counting) kind(d written, retryAfter bool) Kind {
	return Kind{
		Name: s.name,
		Ideal: func(set Setting) time.Duration {
			return time.Duration((float64(set.Calls) - set.Burst) / set.Rate * 1e9)
		},
		New: func(begin time.Time, _ Setting) Judge {
			take, wait := s.count(begin, d)
			return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
				if take(now) {
					return 0, 200, ""
				}
				if retryAfter {
					h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait(now).Seconds())))))
				}
				return 0, 429, ""
			})
		},
	}
}

// A telling is a limiter that a user takes for one.
type telling struct {
	name  string
	burst func(d written) float64 // calls at once, at the beginning
	by    func(d written) reserve.Reserver
}

func single(written) float64 { return 1 }

var tellings = []telling{
	{"a window", everything, func(d written) reserve.Reserver { return reserve.Must(window.New(d.n, d.per)) }},
	{"a token bucket", everything, func(d written) reserve.Reserver {
		return reserve.Must(pace.NewTokenBucket(d.rate(), float64(d.n)))
	}},
	{"bursty", single, func(d written) reserve.Reserver { return reserve.Must(pace.NewBursty(d.rate())) }},
	{"evenly", single, func(d written) reserve.Reserver { return evenly(d.rate()) }},
	{"a window, evenly", single, func(d written) reserve.Reserver {
		return reserve.All(reserve.Must(window.New(d.n, d.per)), evenly(d.rate()))
	}},
}

// Whoever writes down the right rate is served well, whatever kind of limit he takes it for. TOLD is a regular
// expression for the rows to play.
func TestTold(t *testing.T) {
	rows := regexp.MustCompile(os.Getenv("TOLD"))
	for _, d := range writtenDown {
		for _, server := range countings {
			if server.name == "a bucket of 1" && d.rate() > 200 {
				continue // what arrives 60 ms apart from how it was sent can't keep 2 ms
			}
			for _, retryAfter := range []bool{true, false} {
				for _, told := range tellings {
					name := fmt.Sprintf("%v/%s, Retry-After %v/told %s", d, server.name, retryAfter, told.name)
					if !rows.MatchString(name) || os.Getenv("TOLD") == "" && os.Getenv("PACE_LONG") == "" && !(d.short && retryAfter) {
						continue
					}
					t.Run(name, func(t *testing.T) { judgeTold(t, d, server, retryAfter, told) })
				}
			}
		}
	}
}

func judgeTold(t *testing.T, d written, server counting, retryAfter bool, told telling) {
	o := Median(t, server.kind(d, retryAfter), Client{New: func(base http.RoundTripper, _ Kind, _ Setting) *http.Client {
		return &http.Client{Transport: reserve.Must(outbound.New(base, told.by(d), outbound.WithRetries(3)))}
	}}, Setting{
		Rate: d.rate(), Burst: min(server.burst(d), told.burst(d)), Calls: d.calls, Goroutines: max(32, int(d.rate()/5)),
		Latency: [2]time.Duration{30 * time.Millisecond, 90 * time.Millisecond},
	}, 3)
	// A window costs a round trip in each period.
	most, share := 1.2, .05
	byRate := told.name != "a window"
	switch {
	case server.name == "a bucket of 1" && d.rate() > 17: // calls arrive up to 60 ms apart from how they were sent
		most, share = max(2.2, .05*d.rate()), .08
	case server.name == "a bucket of 1" && d.per == 10*time.Second: // the window counts what was refused
		most = 1.25
	case told.name == "a token bucket" && server.windows && d.calls < 6*d.n:
		most = 1.45 // it gives its burst up, and with it what is left of the first period
	case byRate && server.windows && d.n == 20: // two stops
		most = 1.25
	case server.name == "a sliding counter" && !byRate: // what came in a burst is counted as if it had come evenly
		most = 1.3
		if d.calls < 6*d.n {
			most = 2
		}
	}
	share = max(share, (min(max(32, d.rate()/5), told.burst(d))+4)/float64(d.calls)) // what is out when the first refusal comes
	if os.Getenv("FIGURES") != "" {
		word := "holds"
		if !(o.Finished() && o.Took <= most && o.Wasted <= share && o.Failed == 0) {
			word = "SHORT"
		}
		fmt.Printf("%s %s: %.2f (%.2f) %.1f %% (%.1f) %d lost, %d of %d\n", word, t.Name(), o.Took, most, 100*o.Wasted, 100*share, o.Failed, o.Done, o.Calls)
		return
	}
	require.True(t, o.Finished(), "%+v", o)
	require.LessOrEqual(t, o.Took, most, "%+v", o)
	require.LessOrEqual(t, o.Wasted, share, "%+v", o)
	require.Zero(t, o.Failed, "calls that came back refused")
}
