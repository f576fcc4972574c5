package outbound_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// refusing is a server that refuses the calls with these numbers, counted from 0, and notes when each came.
type refusing struct {
	begin   time.Time
	refused map[int]http.Header
	came    []time.Duration
}

func (s *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	n := len(s.came)
	s.came = append(s.came, time.Since(s.begin))
	response := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
	if h, ok := s.refused[n]; ok {
		response.StatusCode, response.Header = 429, h
	}
	return response, nil
}

func calls(t *testing.T, tr http.RoundTripper, n int) {
	t.Helper()
	for range n {
		r, _ := http.NewRequest(http.MethodGet, "http://a.test/", nil)
		_, err := tr.RoundTrip(r)
		require.NoError(t, err)
	}
}

// After a refusal without a time nothing goes for the limit's Penalty, however long WithMaxRetryAfter is. A time that
// the server says counts instead.
func TestPenalty(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		stop   time.Duration
	}{
		"none":   {http.Header{}, 10 * time.Minute},
		"a time": {http.Header{"Retry-After": {"7"}}, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &refusing{begin: time.Now(), refused: map[int]http.Header{1: c.header}}
				tr := reserve.Must(outbound.New(server, nil, outbound.WithRetries(1), outbound.WithMaxRetryAfter(time.Minute),
					outbound.WithLimit(outbound.Limit{Limiter: reserve.Must(pace.NewBursty(10)), Penalty: 10 * time.Minute})))
				calls(t, tr, 2)
				require.Len(t, server.came, 3)
				require.Equal(t, c.stop+100*time.Millisecond, server.came[2]-server.came[1], "the distance of two calls, too")
			})
		})
	}
	_, err := outbound.New(nil, nil, outbound.WithLimit(outbound.Limit{
		Name: "x", Limiter: reserve.Must(pace.NewBursty(1)), Penalty: -1,
	}))
	require.EqualError(t, err, `outbound: the Penalty of WithLimit "x" is -1ns; want 0 or more`)
}

// A limit that was refused is derated by a part of its rate: if that grows tenfold, so do the calls. Before, each call
// held the limiter as at the old rate.
func TestDeratedLimiterGetsAnotherRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &refusing{begin: time.Now(), refused: map[int]http.Header{2: {"Retry-After": {"1"}}}}
		limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))
		tr := reserve.Must(outbound.New(server, limiter))
		calls(t, tr, 20)
		require.NoError(t, limiter.SetRate(100))
		begin := time.Now()
		calls(t, tr, 100)
		require.Less(t, time.Since(begin), 1150*time.Millisecond)
	})
}

// A limit of a fixed rate that is refused runs slower by 4 %. If a second stop follows within 25 of its length, by 8 %,
// which is the most, and for as long.
func TestDerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := http.Header{"Retry-After": {"30"}}
		server := &refusing{begin: time.Now(), refused: map[int]http.Header{0: stop}}
		tr := reserve.Must(outbound.New(server, reserve.Must(pace.NewBursty(1, pace.WithBurst(0))), outbound.WithRetries(1)))
		spaced := func(n int) float64 { // the last ten of n calls
			calls(t, tr, n)
			n = len(server.came)
			return (server.came[n-1] - server.came[n-11]).Seconds() / 10
		}
		require.InDelta(t, 1.04, spaced(12), 0.01)
		require.InDelta(t, 1, spaced(50), 0.001)
		server.refused[len(server.came)] = stop
		require.InDelta(t, 1.04, spaced(12), 0.005)
		for range 3 {
			server.refused[len(server.came)] = stop
			require.InDelta(t, 1.08, spaced(12), 0.005)
		}
		require.InDelta(t, 1.06, spaced(350), 0.01)
		require.InDelta(t, 1, spaced(1500), 0.001)
	})
}

// An outage is one event: however many calls it refuses, the limit is derated by 4 %.
func TestDeratedOnceByAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &refusing{begin: time.Now(), refused: map[int]http.Header{}}
		for i := range 9 {
			server.refused[i] = http.Header{"Retry-After": {"30"}}
		}
		tr := reserve.Must(outbound.New(server, reserve.Must(pace.NewBursty(1, pace.WithBurst(0))), outbound.WithRetries(20)))
		calls(t, tr, 12)
		n := len(server.came)
		require.InDelta(t, 1.04, (server.came[n-1]-server.came[n-11]).Seconds()/10, 0.01)
	})
}
