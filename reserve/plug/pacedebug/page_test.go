package pacedebug_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/pacedebug"
	"github.com/nextfree/pace/reserve/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

type row struct {
	Kind, Name, Limit, Key string
	Rate, Stored           any
	Waiting                int
	InFlight               int `json:"in_flight"`
	Next                   time.Time
	StoppedUntil           time.Time `json:"stopped_until"`
	Refused                uint64
	Keys                   int
	LongestWait            float64 `json:"longest_wait_seconds"`
	Error                  string
	Before                 []int `json:"waiting_before"`
}

func get(t *testing.T, page http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/debug/pace"+query, nil))
	require.Equal(t, 200, w.Code)
	return w
}

func rows(t *testing.T, page http.Handler) []row {
	t.Helper()
	var all struct{ Limits []row }
	require.NoError(t, json.Unmarshal(get(t, page, "?format=json").Body.Bytes(), &all))
	return all.Limits
}

type transport struct{ limits []outbound.LimitState }

func (t transport) Snapshot() outbound.Snapshot { return outbound.Snapshot{Limits: t.limits} }

func TestRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pacedebug.New()
		require.Empty(t, rows(t, page))
		require.Contains(t, get(t, page, "").Body.String(), "Nothing is shown yet")

		limiter := pace.Must(pace.NewBursty(1))
		require.NoError(t, page.Limiter("billing", limiter))
		require.True(t, limiter.TryAcquire(8))
		go func() { _ = limiter.Wait(ctx) }()
		require.NoError(t, page.Limiter("free", pace.Must(pace.NewBursty(math.Inf(1)))))

		users := keyed.New(func(string) (*pace.Policy, error) { return pace.Bursty(1) })
		users.TryAcquire("ann", 3)
		require.NoError(t, page.Keys("users", users))

		queue := pace.Must(fair.New(limiter, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}))
		go func() { _, _ = queue.Class("batch").ReserveWithin(ctx, 1, reserve.Forever) }()
		require.NoError(t, page.Queue("queue", queue))

		until := time.Now().Add(240 * time.Second)
		require.NoError(t, page.Transport("github", transport{[]outbound.LimitState{
			{Name: "core", Key: "api.github.com", Rate: 1.4, InFlight: 2},
			{Name: "search", Key: "api.github.com", StoppedUntil: until, Waiting: 17, Refused: 3},
		}}))
		store := pace.Must(shared.NewIn(shared.Memory(), "jobs", pace.Must(pace.Bursty(10))))
		require.NoError(t, page.Shared("jobs", store))
		synctest.Wait()

		got := rows(t, page)
		require.Len(t, got, 8)
		require.Equal(t, "billing", got[0].Name)
		require.Equal(t, 1.0, got[0].Rate)
		require.Equal(t, -10.0, got[0].Stored) // 8 were taken, and a caller and the queue wait for one each
		require.Equal(t, 1, got[0].Waiting)
		require.Equal(t, "no limit", got[1].Rate)
		require.Equal(t, row{Kind: "keys", Name: "users", Stored: 0.0, Keys: 1, Before: make([]int, 60)}, got[2])
		require.Equal(t, "people", got[3].Limit)
		require.Equal(t, "batch", got[4].Limit)
		require.Equal(t, 1, got[4].Waiting)
		require.Equal(t, 17, got[5].Waiting)
		require.Equal(t, "search", got[5].Limit)
		require.True(t, until.Equal(got[5].StoppedUntil))
		require.Equal(t, 2, got[6].InFlight)
		require.Equal(t, "jobs", got[7].Name)

		text := get(t, page, "").Body.String()
		require.Contains(t, text, "4m0s")
		require.Contains(t, text, "no limit")
		require.NotContains(t, text, "http://")
		require.NotContains(t, text, "https://")
		time.Sleep(5 * time.Second)
		require.Equal(t, 5.0, rows(t, page)[4].LongestWait)
		require.Contains(t, get(t, page, "").Body.String(), "longest wait 5 s")
		time.Sleep(time.Minute) // in the bubble: the waiting caller goes
	})
}

// A key that a server or a user chose is text, on the page too.
func TestEscaping(t *testing.T) {
	page := pacedebug.New()
	evil := `<script>alert(1)</script>"'`
	require.NoError(t, page.Transport(evil, transport{[]outbound.LimitState{{Name: evil, Key: evil}}}))
	require.NotContains(t, get(t, page, "").Body.String(), "<script>")
	require.Equal(t, evil, rows(t, page)[0].Key)
}

// A crowd is a transport whose number of waiting calls changes.
type crowd struct{ atomic.Int64 }

func (c *crowd) Snapshot() outbound.Snapshot {
	return outbound.Snapshot{Limits: []outbound.LimitState{{Name: "a", Waiting: int(c.Load())}}}
}

// The line shows the last five minutes, of samples that are taken while nobody looks too.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pacedebug.New()
		var waiting crowd
		require.NoError(t, page.Transport("api", &waiting))
		stop, cancel := context.WithCancelCause(ctx)
		ended := make(chan error)
		go func() { ended <- page.Sample(stop) }()
		synctest.Wait()
		waiting.Store(7)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		waiting.Store(0)
		time.Sleep(time.Minute)
		before := rows(t, page)[0].Before
		require.Len(t, before, 60)
		require.Equal(t, []int{0, 7, 7, 0}, before[60-15:60-11])
		time.Sleep(5 * time.Minute)
		require.Equal(t, make([]int, 60), rows(t, page)[0].Before)
		done := errors.New("done")
		cancel(done)
		require.ErrorIs(t, <-ended, done)
	})
}

type failing struct{}

func (failing) Update(context.Context, string, func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	return errors.New("the disk is full")
}

// A store that fails costs its row, and no other.
func TestFailingStore(t *testing.T) {
	page := pacedebug.New()
	require.NoError(t, page.Shared("jobs", pace.Must(shared.NewIn(failing{}, "jobs", pace.Must(pace.Bursty(10))))))
	require.NoError(t, page.Limiter("billing", pace.Must(pace.NewBursty(1))))
	got := rows(t, page)
	require.Contains(t, got[0].Error, "the disk is full")
	require.Equal(t, 1.0, got[1].Rate)
	require.Contains(t, get(t, page, "").Body.String(), "the disk is full")
}

func TestBadSources(t *testing.T) {
	page := pacedebug.New()
	limiter := pace.Must(pace.NewBursty(1))
	require.NoError(t, page.Limiter("a", limiter))
	for want, err := range map[string]error{
		`pacedebug: the name of a limiter is "a"; want a name that no other limiter has`: page.Limiter("a", limiter),
		`pacedebug: the name of a limiter is ""; want a name that no other limiter has`:  page.Limiter("", limiter),
		`pacedebug: the limiter b is <nil>; want one that is not nil`:                    page.Limiter("b", nil),
		`pacedebug: the transport b is <nil>; want one that is not nil`:                  page.Transport("b", nil),
	} {
		require.EqualError(t, err, want)
	}
	require.True(t, strings.HasPrefix(get(t, page, "").Header().Get("Content-Type"), "text/html"))
}
