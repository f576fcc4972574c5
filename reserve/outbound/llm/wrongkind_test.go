package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// A counting is a way in which servers count so much a minute. It lets at most burst go at once.
type counting struct {
	name string
	make func(minute int) (by *reserve.Limiter, burst float64)
}

// bucketOf is a bucket that holds what refills in a time, and at least the largest call.
func bucketOf(name string, held time.Duration) counting {
	return counting{name, func(minute int) (*reserve.Limiter, float64) {
		least := 1.2
		if minute > 10_000 {
			least = 1.2 * largestCall
		}
		size := max(least, float64(minute)*held.Minutes())
		return reserve.Must(pace.NewTokenBucket(float64(minute)/60, size)), size
	}}
}

var minuteCountings = []counting{
	bucketOf("a bucket of a second", time.Second),
	bucketOf("a bucket of ten seconds", 10*time.Second),
	bucketOf("a bucket of a minute", time.Minute),
	{"fixed minutes", func(minute int) (*reserve.Limiter, float64) {
		return reserve.Must(calendar.New(minute, calendar.Every(time.Minute))), float64(minute)
	}},
	{"a rolling minute", func(minute int) (*reserve.Limiter, float64) {
		return reserve.Must(window.New(minute, time.Minute)), float64(minute)
	}},
	{"rolling ten seconds", func(minute int) (*reserve.Limiter, float64) {
		return reserve.Must(window.New(minute/6, 10*time.Second)), float64(minute / 6)
	}},
}

const largestCall = 1500 // tokens; the smallest has 500

// A minuteTold is how a user takes a limit.
type minuteTold struct {
	name  string
	burst float64 // in minutes' worth
	opts  []Option
}

var minuteTellings = []minuteTold{
	{"windows", 1, nil},
	{"buckets of a minute", 1, []Option{WithBucket(time.Minute)}},
	{"buckets of ten seconds", 1. / 6, []Option{WithBucket(10 * time.Second)}},
	{"requests over ten seconds", 1. / 6, []Option{WithRequestWindow(10 * time.Second)}},
}

// A minuteKind is a row: a limit that is told as another kind than the server's.
type minuteKind struct {
	server counting
	told   minuteTold
	tokens bool
	minute int           // calls
	takes  time.Duration // a call
	bare   bool          // refusals without a time
}

func (k minuteKind) String() string {
	unit := "requests"
	if k.tokens {
		unit = "tokens"
	}
	return fmt.Sprintf("%d a minute of %v/%s of %s/bare %v/told %s", k.minute, k.takes, k.server.name, unit, k.bare, k.told.name)
}

// played is what came of a row: how long it took, of the ideal, what share of the attempts was refused, what was lost.
type played struct {
	over, refused float64
	lost, calls   int
}

const minuteCallers = 20

func (k minuteKind) play(t *testing.T) (p played) {
	minute, limits, mean := k.minute, Limits{RequestsPerMinute: k.minute, TokensPerMinute: 1e8}, 1.
	if k.tokens {
		minute, mean = 1000*k.minute, 1000
		limits = Limits{RequestsPerMinute: 1e6, TokensPerMinute: minute}
	}
	by, burst := k.server.make(minute)
	var mu sync.Mutex
	sent, refused := 0, 0
	server := answer(func(r *http.Request, _ string) *http.Response {
		time.Sleep(time.Duration(10+7*len(r.Header.Get("X-In"))) * time.Millisecond)
		cost, n := 1, sizesOf(r)
		if k.tokens {
			cost = n.in
		}
		mu.Lock()
		sent++
		_, err := by.ReserveWithin(t.Context(), cost, 0)
		if err != nil {
			refused++
		}
		mu.Unlock()
		var wait *reserve.WaitError
		switch {
		case errors.As(err, &wait) && !k.bare:
			return says(429, `{}`, "Retry-After: "+strconv.Itoa(max(1, int(math.Ceil(wait.Wait.Seconds())))))
		case err != nil:
			return says(429, `{}`)
		}
		time.Sleep(k.takes)
		return says(200, fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":0,"total_tokens":%d}}`, n.in, n.in))
	})
	opts := append([]Option{
		WithOutbound(outbound.WithRetries(3)),
		WithEstimate(func(r *http.Request, _ []byte) (int, int) { return sizesOf(r).in, 0 }),
	}, k.told.opts...)
	transport := reserve.Must(New(server, OpenAI(), limits, opts...))
	p.calls = 5 * k.minute
	ideal := (float64(p.calls)-min(burst/mean, k.told.burst*float64(k.minute)))/float64(k.minute)*60 + k.takes.Seconds()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10*ideal*float64(time.Second)))
	defer cancel()
	begin, next := time.Now(), 0
	var all sync.WaitGroup
	callers := minuteCallers
	if need := int(1.5 * k.takes.Minutes() * float64(k.minute)); need > callers {
		callers = need
	}
	for range callers {
		all.Go(func() {
			for {
				mu.Lock()
				n := next
				next++
				mu.Unlock()
				if n >= p.calls {
					return
				}
				size := sizes{in: 500 + n*379%1001}
				r := reserve.Must(http.NewRequestWithContext(ctx, http.MethodPost, api, strings.NewReader(`{"model":"m"}`)))
				r.Header = size.header("")
				response, err := transport.RoundTrip(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
				if err != nil || response.StatusCode != http.StatusOK {
					mu.Lock()
					p.lost++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	p.over, p.refused = time.Since(begin).Seconds()/ideal, float64(refused)/float64(sent)
	return p
}

// Whoever tells the right rate is served well, whatever kind of limit he takes it for. KIND is a regular expression for
// the rows to play; FIGURES prints them.
func TestToldAsAnotherKind(t *testing.T) {
	rows := regexp.MustCompile(os.Getenv("KIND"))
	for _, minute := range []int{60, 600} {
		for _, takes := range []time.Duration{0, 8 * time.Second} {
			for _, tokens := range []bool{false, true} {
				for _, bare := range []bool{false, true} {
					for _, server := range minuteCountings {
						for _, told := range minuteTellings {
							k := minuteKind{server, told, tokens, minute, takes, bare}
							short := minute == 60 && bare == (takes == 0) && !(bare && tokens)
							if tokens && strings.HasPrefix(told.name, "requests") || !rows.MatchString(k.String()) ||
								os.Getenv("KIND") == "" && !long() && !short {
								continue
							}
							t.Run(k.String(), func(t *testing.T) {
								synctest.Test(t, func(t *testing.T) { k.judge(t) })
							})
						}
					}
				}
			}
		}
	}
}

func (k minuteKind) judge(t *testing.T) {
	p := k.play(t)
	most, share, lost := 1.5, .1, 0
	if k.bare { // nobody says when to come again, and a retry comes within 7 s
		most, share, lost = 2, .17, p.calls/100
	}
	if os.Getenv("FIGURES") != "" {
		word := "holds"
		if p.over > most || p.refused > share || p.lost > lost {
			word = "SHORT"
		}
		fmt.Printf("%s %v: %.2f, %.1f %% refused, %d of %d lost\n", word, k, p.over, 100*p.refused, p.lost, p.calls)
		return
	}
	require.LessOrEqual(t, p.over, most)
	require.LessOrEqual(t, p.refused, share)
	require.LessOrEqual(t, p.lost, lost)
}
