package outbound

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// said is a server that answers each path with headers of its own.
type said map[string][]string

func (s said) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	lines := s[r.URL.Path]
	for i := 0; i < len(lines); i += 2 {
		h.Set(lines[i], lines[i+1])
	}
	return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody, Request: r}, nil
}

// waits returns how long a call to a path waits.
func waits(t *testing.T, tr *Transport, path string) time.Duration {
	t.Helper()
	begin := time.Now()
	r, _ := http.NewRequest(http.MethodGet, "http://a.test"+path, nil)
	_, err := tr.RoundTrip(r)
	require.NoError(t, err)
	return time.Since(begin)
}

// X names no limit, but its responses tell two apart by their sizes: a search that has nothing left stops no tweets.
func TestSizesAreNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := fmt.Sprint(time.Now().Add(2 * time.Minute).Unix())
		server := said{
			"/tweets": {"X-Rate-Limit-Limit", "300", "X-Rate-Limit-Remaining", "250", "X-Rate-Limit-Reset", reset},
			"/search": {"X-Rate-Limit-Limit", "60", "X-Rate-Limit-Remaining", "9", "X-Rate-Limit-Reset", reset},
		}
		tr := reserve.Must(New(server, nil))
		for range 2 {
			require.Zero(t, waits(t, tr, "/tweets")+waits(t, tr, "/search"))
		}
		server["/search"][3] = "0"
		require.Zero(t, waits(t, tr, "/search"))
		require.Zero(t, waits(t, tr, "/tweets"), "it has a limit of its own")
		require.Equal(t, 2*time.Minute, waits(t, tr, "/search"))
	})
}

// Two endpoints have limits of the same size, whose windows begin with their first calls. They are told apart when the
// responses of each have named another end for a few seconds, and stay apart in the windows that follow.
func TestWindowsAreNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := said{}
		says := func(path, left string, reset time.Time) {
			server[path] = []string{"X-Rate-Limit-Limit", "300", "X-Rate-Limit-Remaining", left,
				"X-Rate-Limit-Reset", fmt.Sprint(reset.Unix())}
		}
		tr := reserve.Must(New(server, nil))
		for range 3 {
			begin := time.Now()
			says("/tweets", "250", begin.Add(2*time.Minute))
			says("/likes", "250", begin.Add(4*time.Minute))
			for range 3 {
				require.Zero(t, waits(t, tr, "/tweets")+waits(t, tr, "/likes"))
				<-time.After(4 * time.Second)
			}
			says("/tweets", "0", begin.Add(2*time.Minute))
			require.Zero(t, waits(t, tr, "/tweets"))
			require.Zero(t, waits(t, tr, "/likes"), "it has a limit of its own")
			require.Equal(t, 2*time.Minute-12*time.Second, waits(t, tr, "/tweets"))
			<-time.After(time.Until(begin.Add(4 * time.Minute)))
		}
		n, _ := tr.learned.names.Get("a.test:80")
		require.Len(t, n.known, 2)
	})
}

// Where the end moves on with each response there is one limit.
func TestRollingWindowIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := said{}
		tr := reserve.Must(New(server, nil))
		for range 60 {
			for _, path := range []string{"/a", "/b"} {
				server[path] = []string{"X-RateLimit-Limit", "300", "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", "60"}
				require.Zero(t, waits(t, tr, path))
				<-time.After(time.Second)
			}
		}
		server["/a"][3] = "0"
		require.Zero(t, waits(t, tr, "/a"))
		require.Equal(t, time.Minute, waits(t, tr, "/b"))
	})
}

// A server that tells of another size in each response costs a bounded memory, too. The first ones stay apart.
func TestHostileSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := said{}
		tr := reserve.Must(New(server, nil))
		for i := range 2 * maxNames {
			path := fmt.Sprint("/", i)
			server[path] = []string{"X-RateLimit-Limit", fmt.Sprint(100 + i), "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", "300"}
			waits(t, tr, path)
		}
		n, _ := tr.learned.names.Get("a.test:80")
		require.Len(t, n.windows, maxNames)
		require.LessOrEqual(t, len(n.known), maxNames)
		for range 2 {
			waits(t, tr, "/1")
			waits(t, tr, "/2")
		}
		server["/1"][3] = "0"
		waits(t, tr, "/1")
		require.Zero(t, waits(t, tr, "/2"))
		require.Equal(t, 5*time.Minute, waits(t, tr, "/1"))
	})
}

// A server that names two limits to the calls of one key tells more apart than the caller's keys do.
func TestNamesBesideKeys(t *testing.T) {
	for name, opt := range map[string]Option{
		"PerKey": PerKey(Host, func(string) reserve.Reserver { return evenlyAt(1000) }),
		"Keyed":  WithLimit(Limit{Keyed: Keyed(Host, func(string) reserve.Reserver { return evenlyAt(1000) })}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reset := fmt.Sprint(time.Now().Add(time.Minute).Unix())
				server := said{
					"/core":   {"X-RateLimit-Resource", "core", "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", reset},
					"/search": {"X-RateLimit-Resource", "search", "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", reset},
				}
				tr := reserve.Must(New(server, nil, opt))
				for range 2 {
					waits(t, tr, "/core")
					waits(t, tr, "/search")
				}
				server["/search"][3] = "0"
				waits(t, tr, "/search")
				require.Less(t, waits(t, tr, "/core"), time.Second)
				require.Greater(t, waits(t, tr, "/search"), 59*time.Second)
			})
		})
	}
}

// Keys that tell as much apart as the server's names, or more, keep their headers to themselves.
func TestNamesAsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := said{}
		for _, path := range []string{"/a", "/b", "/c"} {
			name := map[string]string{"/a": "x", "/b": "x", "/c": "y"}[path]
			server[path] = []string{"X-RateLimit-Resource", name, "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", "60"}
		}
		path := func(r *http.Request) string { return r.URL.Path }
		paths := map[string]reserve.Reserver{"/a": evenlyAt(1000), "/b": evenlyAt(1000), "/c": evenlyAt(1000)}
		tr := reserve.Must(New(server, nil, PerKey(path, func(path string) reserve.Reserver { return paths[path] })))
		for range 3 {
			for path := range server {
				waits(t, tr, path)
			}
		}
		require.False(t, tr.learned.any.Load())
	})
}

// A server that names two limits speaks of others than the caller's: they are learned beside it. One that names a limit
// of the caller's speaks of that.
func TestNamesBesideAnOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := said{
			"/a": {"X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "1", "X-RateLimit-Reset-After", "60"},
			"/b": {"X-RateLimit-Bucket", "b", "X-RateLimit-Remaining", "1", "X-RateLimit-Reset-After", "60"},
		}
		tr := reserve.Must(New(server, reserve.Must(pace.NewBursty(1000))))
		for range 2 {
			waits(t, tr, "/a")
			waits(t, tr, "/b")
		}
		server["/a"][3] = "0"
		waits(t, tr, "/a")
		require.Less(t, waits(t, tr, "/b"), time.Second)
		require.Greater(t, waits(t, tr, "/a"), 59*time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		reset := fmt.Sprint(time.Now().Add(time.Minute).Unix())
		server := said{
			"/core":   {"X-RateLimit-Resource", "core", "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", reset},
			"/search": {"X-RateLimit-Resource", "search", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset},
		}
		searches := func(r *http.Request) int { return map[string]int{"/search": 1}[r.URL.Path] }
		tr := reserve.Must(New(server, reserve.Must(pace.NewBursty(1000)), WithLimit(Limit{
			Name: "search", Limiter: reserve.Must(pace.NewBursty(1000)), Cost: searches})))
		waits(t, tr, "/core")
		waits(t, tr, "/search")
		require.Less(t, waits(t, tr, "/core"), time.Second)
		require.Greater(t, waits(t, tr, "/search"), 59*time.Second)
	})
}

// A server that names a new limit in each response costs a bounded memory, and its calls still go.
func TestHostileNames(t *testing.T) {
	server := said{}
	tr := reserve.Must(New(server, nil))
	for i := range 3 * maxNames {
		path := fmt.Sprint("/", i)
		server[path] = []string{"X-RateLimit-Resource", path, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "300"}
		r, _ := http.NewRequest(http.MethodGet, "http://a.test"+path, nil)
		if i >= maxNames { // now they stop the limit of the host
			server[path][3] = "1"
		}
		_, err := tr.RoundTrip(r)
		require.NoError(t, err)
	}
	require.Equal(t, maxNames, tr.learned.buckets.Len())
}
