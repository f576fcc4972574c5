package outbound

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/internal/recent"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A namer is a server, as a round tripper, that says in its responses which calls share a limit.
type namer struct {
	judge func(r *http.Request, now time.Duration) *http.Response

	mu            sync.Mutex
	begin         time.Time
	calls, denied int
}

func (n *namer) RoundTrip(r *http.Request) (*http.Response, error) {
	<-time.After(10 * time.Millisecond)
	n.mu.Lock()
	response := n.judge(r, time.Since(n.begin))
	n.calls++
	if response.StatusCode != 200 {
		n.denied++
	}
	n.mu.Unlock()
	<-time.After(10 * time.Millisecond)
	return response, nil
}

// finish makes the calls with so many workers for each list, and returns when each list was done.
func finish(base *namer, transport http.RoundTripper, workers int, lists ...[]string) []time.Duration {
	base.begin = time.Now()
	client := &http.Client{Transport: transport}
	done := make([]time.Duration, len(lists))
	var all sync.WaitGroup
	for i, urls := range lists {
		var mu sync.Mutex
		for range workers {
			all.Go(func() {
				for {
					mu.Lock()
					if len(urls) == 0 {
						mu.Unlock()
						return
					}
					url := urls[0]
					urls = urls[1:]
					mu.Unlock()
					for {
						status, err := get(client, url)
						if err == nil && status == 200 {
							mu.Lock()
							done[i] = time.Since(base.begin)
							mu.Unlock()
							break
						}
						<-time.After(200 * time.Millisecond)
					}
				}
			})
		}
	}
	all.Wait()
	return done
}

func repeat(n int, format string) (urls []string) {
	for i := range n {
		urls = append(urls, strings.ReplaceAll(format, "#", strconv.Itoa(i)))
	}
	return urls
}

// gitHub allows so many core calls in each window, and 30 searches in each minute.
func gitHub(core int, window time.Duration) *namer {
	used := map[string]int{}
	since := map[string]time.Duration{}
	return &namer{judge: func(r *http.Request, now time.Duration) *http.Response {
		resource, limit, per := "core", core, window
		if strings.HasPrefix(r.URL.Path, "/search/") {
			resource, limit, per = "search", 30, time.Minute
		}
		if start := now.Truncate(per); since[resource] != start {
			since[resource], used[resource] = start, 0
		}
		used[resource]++
		left, status := limit-used[resource], 200
		if left < 0 {
			left, status = 0, 403
		}
		reset := time.Now().Add(since[resource] + per - now).Add(time.Second - 1).Unix()
		return &http.Response{StatusCode: status, Body: http.NoBody, Header: headers(
			"X-RateLimit-Limit: "+strconv.Itoa(limit), "X-RateLimit-Remaining: "+strconv.Itoa(left),
			"X-RateLimit-Reset: "+strconv.FormatInt(reset, 10), "X-RateLimit-Resource: "+resource,
		)}
	}}
}

// discord allows 5 calls in 5 s for each channel, and 50/s for all; named says whether the bucket of each channel has a
// name of its own.
func discord(named bool) *namer {
	type window struct {
		begin time.Duration
		used  int
	}
	channels, all := map[string]*window{}, window{begin: -time.Hour}
	return &namer{judge: func(r *http.Request, now time.Duration) *http.Response {
		channel := strings.Split(r.URL.Path, "/")[4]
		if now >= all.begin+time.Second {
			all = window{now.Truncate(time.Second), 0}
		}
		if all.used++; all.used > 50 {
			wait := (all.begin + time.Second - now).Seconds()
			return &http.Response{StatusCode: 429, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"message":"x","retry_after":%.3f,"global":true}`, wait))),
				Header: headers("Retry-After: 1", "X-RateLimit-Global: true", "X-RateLimit-Scope: global")}
		}
		w := channels[channel]
		if w == nil || now >= w.begin+5*time.Second {
			w = &window{begin: now}
			channels[channel] = w
		}
		w.used++
		reset := (w.begin + 5*time.Second - now).Seconds()
		bucket := "abcd1234"
		if named {
			bucket += channel
		}
		h := headers("X-RateLimit-Limit: 5", "X-RateLimit-Remaining: "+strconv.Itoa(max(0, 5-w.used)),
			fmt.Sprintf("X-RateLimit-Reset-After: %.3f", reset), "X-RateLimit-Bucket: "+bucket)
		if w.used <= 5 {
			return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody}
		}
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(reset))))
		h.Set("X-RateLimit-Scope", "user")
		return &http.Response{StatusCode: 429, Header: h, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"message":"x","retry_after":%.3f,"global":false}`, reset)))}
	}}
}

// The figure of each row is today's; it may get no more than 2 % worse, or, where it depends on which goroutine is the
// first, not worse than the worst of some runs.
//
// N29: core and search of GitHub on one transport, without a word from the user.
func TestGitHubsResources(t *testing.T) {
	resource := func(r *http.Request) string {
		if strings.HasPrefix(r.URL.Path, "/search/") {
			return "search"
		}
		return "core"
	}
	unlimited := func(string) (*reserve.Policy, error) { return pace.Bursty(math.Inf(1)) }
	for _, c := range []struct {
		name         string
		limit        int // core calls in a window
		window       time.Duration
		opts         func() []Option
		core, search float64 // windows that 2 * limit core calls take, and times searches
		refused      int     // at most
	}{
		{"PerKey", 5000, time.Hour, func() []Option { return []Option{PerKey(resource, keyed.New(unlimited).For)} }, 1.002, 1, 300},
		{"PerKey, Adaptive", 5000, time.Hour, func() []Option { return []Option{PerKey(resource, keyed.New(unlimited).For), Adaptive()} }, 1.002, 1, 20},
		{"nothing", 5000, time.Hour, func() []Option { return nil }, 1.002, 1, 300},
		{"Adaptive", 5000, time.Hour, func() []Option { return []Option{Adaptive()} }, 1.002, 1, 20},
		{"nothing, 20/s", 1200, time.Minute, func() []Option { return nil }, 1.025, 1, 100},
		{"Adaptive, 20/s", 1200, time.Minute, func() []Option { return []Option{Adaptive()} }, 1.026, 1, 5},
	} {
		if limitertest.Slower > 1 && c.limit > 2000 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				<-time.After(30 * 365 * 24 * time.Hour) // so that a Unix time has ten digits
				server := gitHub(c.limit, c.window)
				transport := reserve.Must(New(server, nil, append(c.opts(), WithRetries(100))...))
				took := finish(server, transport, 16, repeat(2*c.limit, "http://api.github.com/repos/#/x"),
					repeat(180, "http://api.github.com/search/code?q=#"))
				core, search := took[0].Seconds()/c.window.Seconds(), took[1].Minutes()/5 // 30 searches at once in each minute
				t.Logf("core %.3f and search %.3f times the ideal, %d refused", core, search, server.denied)
				require.InEpsilon(t, c.core, core, 0.02)
				require.InEpsilon(t, c.search, search, 0.02)
				require.LessOrEqual(t, server.denied, c.refused)
			})
		})
	}
}

// N11g: 80 channels of Discord, and a global limit that nobody knows.
func TestDiscordsBuckets(t *testing.T) {
	path := func(r *http.Request) string { return r.URL.Path }
	unlimited := func(string) (*reserve.Policy, error) { return pace.Bursty(math.Inf(1)) }
	for _, c := range []struct {
		name          string
		named         bool
		new           func(base http.RoundTripper) *Transport
		took, refused float64
	}{
		{"nothing", false, func(base http.RoundTripper) *Transport { return reserve.Must(New(base, nil, WithRetries(100))) }, 1.2, 0.68},
		{"Adaptive", false, func(base http.RoundTripper) *Transport {
			return reserve.Must(New(base, nil, Adaptive(), WithRetries(100)))
		}, 1.06, 0.016},
		{"Adaptive, a name each", true, func(base http.RoundTripper) *Transport {
			return reserve.Must(New(base, nil, Adaptive(), WithRetries(100)))
		}, 1.42, 0.016},
		{"New and PerKey, Adaptive", false, func(base http.RoundTripper) *Transport {
			return reserve.Must(New(base, reserve.Must(pace.NewBursty(math.Inf(1))), Adaptive(), PerKey(path, keyed.New(unlimited).For), WithRetries(100)))
		}, 1.04, 0.004},
	} {
		if limitertest.Slower > 1 && !c.named {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				<-time.After(30 * 365 * 24 * time.Hour)
				server := discord(c.named)
				var lists [][]string
				for channel := range 80 {
					lists = append(lists, repeat(100, fmt.Sprintf("http://discord.com/api/v10/channels/%d/messages", channel)))
				}
				took := slices.Max(finish(server, c.new(server), 2, lists...)).Seconds() / (8000 / 50)
				refused := float64(server.denied) / float64(server.calls)
				t.Logf("%.3f times the ideal, %.2f %% refused", took, 100*refused)
				require.LessOrEqual(t, took, c.took)
				require.LessOrEqual(t, refused, c.refused)
			})
		})
	}
}

// Where two names share a prefix nothing is predicted; where all have one name a new path has it, too.
func TestPrefixes(t *testing.T) {
	l := newLearned(queue.Unlimited(nil), true)
	request := func(method, url string) *http.Request { return httptest.NewRequest(method, url, nil) }
	name := func(method, url string) string {
		return l.plan(request(method, url), true, clockwork.NewRealClock()).key.Name
	}
	learn := func(method, url, name string) { l.learn(request(method, url), route{key: reply.Key{Name: name}}) }
	require.Empty(t, name("GET", "http://a/repos/1"), "nothing is known")
	learn("GET", "http://a/repos/1", "core")
	require.Equal(t, "core", name("GET", "http://a/repos/1?page=2"))
	require.Empty(t, name("GET", "http://a/repos/2"), "one path is no rule")
	learn("GET", "http://a/repos/1/x", "core")
	learn("GET", "http://a/repos/2", "core")
	require.Equal(t, "core", name("GET", "http://a/repos/3/issues"))
	require.Equal(t, "core", name("GET", "http://a/search/code"), "whatever is asked of that host")
	require.Empty(t, name("POST", "http://a/repos/1"), "another method")
	require.Empty(t, name("GET", "http://b/repos/1"), "another host")
	learn("GET", "http://a/search/code", "search")
	require.Equal(t, "search", name("GET", "http://a/search/code"))
	learn("GET", "http://a/search/issues", "search")
	require.Equal(t, "search", name("GET", "http://a/search/users"))
	require.Equal(t, "core", name("GET", "http://a/repos/3"))
	require.Empty(t, name("GET", "http://a/user"), "core or search")
	learn("GET", "http://a/repos/1", "other")
	require.Equal(t, "other", name("GET", "http://a/repos/1"), "the last response")
	require.Empty(t, name("GET", "http://a/repos/3"), "core or other")
	for _, odd := range []string{"http://a", "http://a/", "http://a//", "http://a/" + strings.Repeat("x/", 100)} {
		learn("GET", odd, "odd")
		require.Equal(t, "odd", name("GET", odd))
	}
}

// A million paths of one host take no more memory than recent.Most entries.
func TestManyPaths(t *testing.T) {
	l := newLearned(queue.Unlimited(nil), true)
	r := httptest.NewRequest(http.MethodGet, "http://a/", nil)
	for i := range 4 * recent.Most {
		r.URL.Path = "/repos/" + strconv.Itoa(i)
		l.learn(r, route{key: reply.Key{Name: "core"}})
	}
	require.LessOrEqual(t, l.routes.Len(), recent.Most)
	r.URL.Path = "/repos/new"
	require.Equal(t, "core", l.plan(r, true, clockwork.NewRealClock()).key.Name)
}

// Calls that wait when it is learned whom they belong to get in the right line.
func TestMovedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		var at []string
		base := tripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			at = append(at, fmt.Sprint(r.URL.Path, " ", time.Since(begin).Round(time.Millisecond)))
			mu.Unlock()
			<-time.After(100 * time.Millisecond)
			if r.URL.Path == "/slow" {
				return status(200, `RateLimit-Policy: "slow";q=10;w=10`, `RateLimit: "slow";r=0;t=10`), nil
			}
			return status(200, `RateLimit-Policy: "fast";q=1000;w=10`, `RateLimit: "fast";r=900;t=9`), nil
		})
		transport := reserve.Must(New(base, nil, Adaptive()))
		var all sync.WaitGroup
		for _, path := range []string{"/slow", "/slow", "/fast", "/fast", "/fast"} {
			all.Go(func() {
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a"+path, nil))
				require.NoError(t, err)
				response.Body.Close()
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, []string{"/slow 0s", "/fast 100ms", "/fast 163ms", "/fast 219ms", "/slow 10.1s"}, at)
	})
}

// GitHub refuses for a secondary limit although the primary one has room: the whole host stops, the user's keys do not.
func TestSecondaryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		opts func() []Option
		get  time.Duration
	}{
		"learned": {func() []Option { return nil }, time.Minute},
		"PerKey": {func() []Option {
			methods := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(math.Inf(1)) })
			return []Option{PerKey(func(r *http.Request) string { return r.Method }, methods.For)}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := tripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost {
						return status(403, "Retry-After: 60", "X-RateLimit-Remaining: 4000", "X-RateLimit-Reset: 3000", "X-RateLimit-Resource: core"), nil
					}
					return status(200, "X-RateLimit-Remaining: 29", "X-RateLimit-Reset: 60", "X-RateLimit-Resource: search"), nil
				})
				transport := reserve.Must(New(base, nil, c.opts()...))
				trip(t, transport, http.MethodGet)
				trip(t, transport, http.MethodPost)
				begin := time.Now()
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil))
				require.NoError(t, err)
				response.Body.Close()
				require.Equal(t, c.get, time.Since(begin))
			})
		})
	}
}

// A refusal for all calls stops all calls, whatever keys they have.
func TestRefusalOfAll(t *testing.T) {
	path := func(r *http.Request) string { return r.URL.Path }
	for name, c := range map[string]func() (reserve.Reserver, Option){
		"learned": func() (reserve.Reserver, Option) { return nil, WithRetries(0) },
		"PerKey": func() (reserve.Reserver, Option) {
			return nil, PerKey(path, func(string) reserve.Reserver { return evenlyAt(math.Inf(1)) })
		},
		"New and PerKey": func() (reserve.Reserver, Option) {
			return evenlyAt(math.Inf(1)), PerKey(path, func(string) reserve.Reserver { return evenlyAt(math.Inf(1)) })
		},
		"WithLimit": func() (reserve.Reserver, Option) {
			return nil, both(WithLimit(Limit{Name: "all", Limiter: evenlyAt(math.Inf(1))}),
				PerKey(path, func(string) reserve.Reserver { return evenlyAt(math.Inf(1)) }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := tripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == "/refused" {
						return status(429, "Retry-After: 2", "X-RateLimit-Global: true"), nil
					}
					return status(200), nil
				})
				by, option := c()
				transport := reserve.Must(New(base, by, option))
				send := func(url string) time.Duration {
					begin := time.Now()
					response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
					require.NoError(t, err)
					response.Body.Close()
					return time.Since(begin)
				}
				require.Zero(t, send("http://a/other"))
				require.Zero(t, send("http://a/refused"))
				require.Equal(t, 2*time.Second, send("http://a/other"))
				require.LessOrEqual(t, send("http://a/new"), time.Second/4, "what all share has a rate now")
				if by == nil && name != "WithLimit" {
					require.LessOrEqual(t, send("http://a/refused"), time.Second/4)
					require.Zero(t, send("http://b/other"), "of that host")
				}
			})
		})
	}
}
