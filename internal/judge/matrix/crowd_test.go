package matrix

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// goals are what a crowd of a size must reach: refused at most, Jain's index and the used part at least.
var goals = map[string]map[int][3]float64{
	"bucket, bare": {
		1: {0.01, 1, 0.97}, 2: {0.02, 0.96, 0.97}, 3: {0.02, 0.94, 0.97}, 5: {0.03, 0.92, 0.97},
		10: {0.03, 0.90, 0.97}, 30: {0.06, 0.87, 0.97}, 100: {0.15, 0.80, 0.97},
	},
	"bucket, Retry-After":   {3: {0.015, 0.9, 0.95}, 10: {0.02, 0.82, 0.95}, 30: {0.05, 0.8, 0.95}},
	"1,000 in 10 s, bare":   {3: {0.04, 0.9, 0.94}, 10: {0.05, 0.85, 0.95}, 30: {0.08, 0.8, 0.95}},
	"bucket of 20/s":        {3: {0.05, 0.9, 0.97}, 10: {0.05, 0.78, 0.88}},
	"bucket of 400/s":       {3: {0.02, 0.94, 0.97}, 10: {0.03, 0.90, 0.97}, 30: {0.06, 0.87, 0.97}},
	"503, bare":             {3: {0.03, 0.84, 0.95}, 10: {0.05, 0.80, 0.97}, 30: {0.06, 0.85, 0.97}},
	"503, Retry-After":      {3: {0.01, 0.92, 0.95}, 10: {0.025, 0.6, 0.95}, 30: {0.07, 0.7, 0.95}},
	"bucket, 1 % by chance": {3: {0.04, 0.9, 0.95}, 10: {0.05, 0.85, 0.95}},
}

// busy answers 503 where a kind answers 429.
func busy(of func(time.Time, Setting) Judge) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		limit := of(begin, s)
		return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
			took, status, body := limit.Answer(now, r, h)
			if status == http.StatusTooManyRequests {
				status = http.StatusServiceUnavailable
			}
			return took, status, body
		})
	}
}

// newOpenWindows counts in windows of 10 s, and says nothing.
func newOpenWindows(_ time.Time, s Setting) Judge {
	quota, left := int(s.Rate*10), 0
	var end time.Time
	return judge(func(now time.Time, _ *http.Request, _ http.Header) (time.Duration, int, string) {
		if !now.Before(end) {
			end, left = now.Truncate(10*time.Second).Add(10*time.Second), quota
		}
		if left == 0 {
			return 0, 429, ""
		}
		left--
		return 0, 200, ""
	})
}

// newUncertain is a token bucket, and one call in a hundred gets a 503 besides.
func newUncertain(begin time.Time, s Setting) Judge {
	random, limit := rand.New(rand.NewPCG(s.Seed, 2)), newBucket("")(begin, s)
	return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
		if random.Float64() < 0.01 {
			return 0, 503, ""
		}
		return limit.Answer(now, r, h)
	})
}

// Programs that share a limit, with nothing but its refusals to tell them of each other, use all of it, are refused little and
// share it evenly: medians of three seeds in the long run. CROWD, a regular expression, picks others and prints their figures.
func TestCrowd(t *testing.T) {
	only := regexp.MustCompile(pickCrowd())
	for _, k := range []struct {
		Kind
		rate float64
	}{
		{Kind{Name: "bucket, bare", New: newBucket("")}, 100}, {Kind{Name: "bucket, Retry-After", New: newBucket("1")}, 100},
		{Kind{Name: "1,000 in 10 s, bare", New: newOpenWindows}, 100}, {Kind{Name: "bucket, 1 % by chance", New: newUncertain}, 100},
		{Kind{Name: "bucket of 20/s", New: newBucket("")}, 20}, {Kind{Name: "bucket of 400/s", New: newBucket("")}, 400},
		{Kind{Name: "503, bare", New: busy(newBucket(""))}, 100}, {Kind{Name: "503, Retry-After", New: busy(newBucket("1"))}, 100},
	} {
		for _, c := range []Client{{Name: "told nothing", New: Unknown.New}, {Name: "told all", New: KnownAdapted.New}, backingOff} {
			for _, n := range []int{1, 2, 3, 5, 10, 30, 100} {
				name := fmt.Sprintf("%s/%d %s", k.Name, n, c.Name)
				if !only.MatchString(name) || raced && n > 3 {
					continue
				}
				t.Run(name, func(t *testing.T) {
					o := medianCrowd(t, k.Kind, c, k.rate, n, 0, 0)
					t.Logf("%-40s used %.3f refused %.3f Jain %.3f least %.2f", name, o.Used, o.Refused, o.Jain, o.Least)
					goal, ok := goals[k.Name][n]
					if ok && (o.Refused > goal[0] || o.Jain < goal[1] || o.Used < goal[2]) { // one run may be an accident
						o = crowdOf(t, 3, k.Kind, c, k.rate, n, 0, 0)
						t.Logf("%-40s used %.3f refused %.3f Jain %.3f least %.2f, medians", name, o.Used, o.Refused, o.Jain, o.Least)
					}
					if strings.HasPrefix(k.Name, "503") && c.Name == "told all" {
						ok = false // they may take the limit for chance
					}
					switch {
					case c.Name == backingOff.Name && n >= 3:
						require.Greater(t, o.Refused, 0.2, "no worse than pace")
					case ok && c.Name != backingOff.Name:
						require.LessOrEqual(t, o.Refused, goal[0])
						require.GreaterOrEqual(t, o.Jain, goal[1]-1e-9)
						require.GreaterOrEqual(t, o.Used, goal[2])
					}
				})
			}
		}
	}
}

func medianCrowd(t *testing.T, k Kind, c Client, rate float64, n, leave int, late time.Duration) (median Crowding) {
	seeds := 1
	if os.Getenv("PACE_LONG") != "" {
		seeds = 3
	}
	return crowdOf(t, seeds, k, c, rate, n, leave, late)
}

// crowdOf returns the median of each figure.
func crowdOf(
	t *testing.T, seeds int, k Kind, c Client, rate float64, n, leave int, late time.Duration,
) (median Crowding) {
	all := make([]Crowding, seeds)
	for i := range all {
		synctest.Test(t, func(*testing.T) {
			<-time.After(time.Until(day))
			s := At(rate, uint64(i+1))
			s.Latency = [2]time.Duration{8 * time.Millisecond, 120 * time.Millisecond}
			all[i] = Crowd(k, c, s, n, leave, late)
		})
	}
	of := func(figure func(Crowding) float64) float64 {
		slices.SortFunc(all, func(a, b Crowding) int { return cmp.Compare(figure(a), figure(b)) })
		return figure(all[seeds/2])
	}
	return Crowding{
		Used: of(func(o Crowding) float64 { return o.Used }), Refused: of(func(o Crowding) float64 { return o.Refused }),
		Jain: of(func(o Crowding) float64 { return o.Jain }), Least: of(func(o Crowding) float64 { return o.Least }),
		Late: of(func(o Crowding) float64 { return o.Late }),
	}
}

// backingOff repeats each refused call after an exponential backoff with full jitter, as most clients do.
var backingOff = Client{Name: "backing off", New: func(base http.RoundTripper, _ Kind, s Setting) *http.Client {
	return &http.Client{Transport: backoff{base, rand.New(rand.NewPCG(s.Seed, 3)), new(sync.Mutex)}}
}}

type backoff struct {
	base   http.RoundTripper
	random *rand.Rand
	mu     *sync.Mutex
}

func (b backoff) RoundTrip(r *http.Request) (*http.Response, error) {
	for longest := 100 * time.Millisecond; ; longest = min(2*longest, 20*time.Second) {
		response, err := b.base.RoundTrip(r)
		if err != nil || response.StatusCode == http.StatusOK {
			return response, err
		}
		b.mu.Lock()
		wait := time.Duration(b.random.Int64N(int64(longest)))
		b.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// One that joins late soon has its share; those that stay use what half of them leave.
func TestCrowdThatChanges(t *testing.T) {
	if os.Getenv("PACE_LONG") == "" {
		t.Skip("only in the long run")
	}
	nothing := Client{Name: "nothing", New: Unknown.New}
	for _, c := range []struct {
		Kind
		n    int
		most float64 // of its share
	}{
		{Kind{Name: "bucket, bare", New: newBucket("")}, 3, 2}, {Kind{Name: "bucket, bare", New: newBucket("")}, 10, 2},
		{Kind{Name: "1,000 in 10 s, bare", New: newOpenWindows}, 3, 2}, {Kind{Name: "1,000 in 10 s, bare", New: newOpenWindows}, 10, 5},
	} {
		o := medianCrowd(t, c.Kind, nothing, 100, c.n, 0, 2*time.Minute)
		t.Logf("%s, %d: the last one has %.2f of its share in its second minute", c.Name, c.n, o.Late)
		require.Greater(t, o.Late, 0.6)
		require.Less(t, o.Late, c.most)
		o = medianCrowd(t, c.Kind, nothing, 100, c.n, c.n/2, 0)
		t.Logf("%s, %d, half leave: used %.3f Jain %.3f", c.Name, c.n, o.Used, o.Jain)
		require.Greater(t, o.Used, 0.92)
		require.Greater(t, o.Jain, 0.85)
	}
}

// A neighbour that comes once leaves no trace: it takes all but one or seven calls of two or three windows.
func TestNeighbourOnce(t *testing.T) {
	for _, windows := range []int{2, 3} {
		for _, leaves := range []int{1, 7} {
			if os.Getenv("PACE_LONG") == "" && (windows != 3 || limitertest.Slower > 1 && leaves != 1) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				<-time.After(time.Until(day))
				begin, s := time.Now(), At(50, 1)
				s.Window = 10 * time.Second
				k := Kind{Name: "visited", New: func(_ time.Time, s Setting) Judge {
					var end time.Time
					left := 0
					return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
						if !now.Before(end) {
							end, left = now.Truncate(s.Window).Add(s.Window), 500
							if at := now.Sub(begin).Seconds(); at >= 50 && at < 50+10*float64(windows) {
								left = leaves
							}
						}
						if left > 0 {
							left--
							return 0, 200, ""
						}
						h.Set("Retry-After", fmt.Sprint(math.Ceil(end.Sub(now).Seconds())))
						return 0, 429, ""
					})
				}}
				n := 0
				callers(k, []Neighbour{{Client: KnownAdapted, Slots: 16}}, s, 0, 600*time.Second, func(_ int, at time.Duration, status int) {
					if at >= 100*time.Second && status == http.StatusOK {
						n++
					}
				})
				t.Logf("%d windows, %d calls left: %d of 25,000", windows, leaves, n)
				require.Greater(t, n, 24_000)
			})
		}
	}
}

func pickCrowd() string {
	usual := "^(bucket, bare|bucket, 1 % by chance|503, Retry-After)/10 told nothing|^bucket, 1 % by chance/3 told all"
	if limitertest.Slower > 1 {
		usual = "^bucket, bare/3 told nothing"
	}
	if os.Getenv("PACE_LONG") != "" {
		usual = "/(1|2|3|5|10|30|100) told|^bucket, bare/10 "
	}
	return cmp.Or(os.Getenv("CROWD"), usual)
}
