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
