package inbound_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// toldAfter sends a request and returns for how many seconds it is to stay away, 0 if it passes.
func toldAfter(t *testing.T, h http.Handler) int {
	t.Helper()
	res := do(h, get("", "/"))
	if res.StatusCode == http.StatusOK {
		return 0
	}
	after, err := strconv.Atoi(res.Header.Get("Retry-After"))
	require.NoError(t, err)
	return after
}

// refusedAfterPasses sends requests until one is refused, and returns how many passed and what the refused one was
// told.
func refusedAfterPasses(t *testing.T, h http.Handler) (passed, after int) {
	t.Helper()
	for ; ; passed++ {
		if after = toldAfter(t, h); after > 0 {
			return passed, after
		}
	}
}

// Five thousand clients are refused and never come back. The clients after them are not told to
// wait behind them, as soon as it can be known.
func TestAComebackQueueOfClientsThatNeverReturnEnds(t *testing.T) {
	wait := func(d time.Duration) func(*testing.T, http.Handler) {
		return func(*testing.T, http.Handler) { time.Sleep(d) }
	}
	for name, c := range map[string]struct {
		policy *reserve.Policy
		then   func(*testing.T, http.Handler)
		passed int // of the clients that come at one moment after that
	}{
		"the store is full again":       {bucket(20, 20), wait(2 * s), 20},
		"and long since":                {bucket(20, 20), wait(30 * s), 20},
		"the store is larger":           {bucket(20, 1000), wait(2 * s), 40},
		"the store is smaller than 1 s": {bucket(20, 5), wait(2 * s), 5},
		"paid later":                    {reserve.Must(pace.Bursty(20)), wait(2*s + 50*time.Millisecond), 21},
		"one request a second passes": {bucket(20, 20), func(t *testing.T, h http.Handler) {
			for range 3 {
				time.Sleep(s)
				require.Zero(t, toldAfter(t, h))
			}
			time.Sleep(s)
		}, 20},
		"refusals went on for a while more": {bucket(20, 20), func(t *testing.T, h http.Handler) {
			for range 10_000 {
				toldAfter(t, h)
				time.Sleep(time.Millisecond)
			}
			time.Sleep(2 * s)
		}, 20},
	} {
		bubble(t, func(t *testing.T) {
			h := build(t, []inbound.Tier{inbound.Global("global", c.policy)}).Handler(ok)
			for range 7000 {
				toldAfter(t, h)
			}
			require.Greater(t, toldAfter(t, h), 1, name)
			c.then(t, h)
			passed, after := refusedAfterPasses(t, h)
			require.Equal(t, c.passed, passed, name)
			require.Equal(t, 1, after, name)
		})
	}
}

// Clients that do come back, a little late, keep their places: new ones are told to come after them.
func TestAComebackQueueOfClientsThatReturnStands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{inbound.Global("global", bucket(20, 20))}).Handler(ok)
		back := map[int]int{} // how many come back in which second
		for range 420 {
			back[toldAfter(t, h)]++
		}
		time.Sleep(400 * time.Millisecond)
		for second := 1; second <= 20; second++ {
			time.Sleep(s)
			for range back[second] {
				require.Zero(t, toldAfter(t, h), "at %d s", second)
			}
			after := toldAfter(t, h) // a new client
			require.Greater(t, after, 19-second, "at %d s", second)
			require.LessOrEqual(t, after, 22-second, "at %d s", second)
		}
	})
}

// Clients that obey Retry-After to the second are refused again only as far as the limiter can't
// store what flows in within a second.
func TestWhoIsRefusedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy func() *reserve.Policy
		again  int // of 99
	}{
		{"a second's worth", func() *reserve.Policy { return reserve.Must(pace.Bursty(20)) }, 0},
		{"10 permits", func() *reserve.Policy { return reserve.Must(pace.Bursty(20, pace.WithCapacity(10))) }, 44},
		{"5 permits", func() *reserve.Policy { return reserve.Must(pace.Bursty(20, pace.WithCapacity(5))) }, 69},
		{"nothing", func() *reserve.Policy { return reserve.Must(pace.Bursty(20, pace.WithBurst(0))) }, 94},
	} {
		bubble(t, func(t *testing.T) {
			h := build(t, []inbound.Tier{inbound.Global("global", c.policy())}).Handler(ok)
			back := map[int]int{}
			for range 100 {
				back[toldAfter(t, h)]++
			}
			require.Equal(t, 1, back[0])
			again := 0
			for second := 1; second <= 10; second++ {
				time.Sleep(s)
				for range back[second] {
					if toldAfter(t, h) > 0 {
						again++
					}
				}
			}
			require.Equal(t, c.again, again, c.name)
		})
	}
}
