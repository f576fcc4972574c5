package outbound

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// busy is a server that takes 100 ms for a call, and asks judge how to answer it: with so many others at work.
type busy struct {
	judge func(working int, h http.Header) (status int)

	mu                     sync.Mutex
	working, calls, denied int
}

func (s *busy) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	status := s.judge(s.working, h)
	s.calls++
	if status != 200 {
		s.denied++
		s.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
	}
	s.working++
	s.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	s.mu.Lock()
	s.working--
	s.mu.Unlock()
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
}

// many makes n calls from 16 goroutines, and returns how long they took.
func many(t *testing.T, tr http.RoundTripper, n int) time.Duration {
	t.Helper()
	begin := time.Now()
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range todo {
				r, _ := http.NewRequest(http.MethodGet, "http://a.test/", nil)
				_, err := tr.RoundTrip(r)
				require.NoError(t, err)
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

// Ten at a time, and 30 s for everybody if there is an eleventh, as at Okta's: 16 callers are told so once, then ten
// are out. Before, all 16 came back together after each stop, and 2,000 calls were not done in 30 min.
func TestRoomAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &busy{judge: func(working int, h http.Header) int {
			if working < 10 {
				return 200
			}
			h.Set("Retry-After", "30")
			return 429
		}}
		took := many(t, reserve.Must(New(server, nil, WithRetries(9))), 2000)
		require.LessOrEqual(t, server.denied, 7)
		require.Less(t, took, 2*time.Minute, "30 s of them stopped; the rate is found anew from 4 a second")
	})
}

// So it is at an upstream without a limiter, whose room nobody asked: 78 of 278 calls were refused, in 6 min 36 s.
func TestRoomOfAnUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped time.Time
		server := &busy{judge: func(working int, h http.Header) int {
			switch now := time.Now(); {
			case working >= 10:
				stopped = now.Add(30 * time.Second)
			case !now.Before(stopped):
				return 200
			}
			h.Set("Retry-After", "30")
			return 429
		}}
		upstream := Upstream{Base: reserve.Must(url.Parse("http://b.test"))}
		took := many(t, reserve.Must(NewUpstreams(server, []Upstream{upstream}, WithRetries(9))), 200)
		require.LessOrEqual(t, server.denied, 7)
		require.Less(t, took, 40*time.Second, "30 s of them stopped")
	})
}

// The same without a time: only the refused call waits, but no more are out than were accepted. Before, the server
// refused 120 calls.
func TestRoomAfterABareRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &busy{judge: func(working int, h http.Header) int { return map[bool]int{true: 200, false: 429}[working < 10] }}
		took := many(t, reserve.Must(New(server, nil, WithRetries(9))), 2000)
		require.LessOrEqual(t, server.denied, 20, "of %d calls, in %v", server.calls, took)
	})
}

// A server that refuses 1, 3 or 10 % of the calls, whatever is out, is not slow for that: 46, 62 and 103 s. Once, these
// took 6 min.
func TestBareRefusalsByChance(t *testing.T) {
	for one, most := range map[int]time.Duration{100: 52, 33: 68, 10: 130} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			server := &busy{judge: func(int, http.Header) int { n++; return map[bool]int{true: 200, false: 429}[n%one > 0] }}
			took := many(t, reserve.Must(New(server, nil, WithRetries(9))), 5000)
			require.Less(t, took, most*time.Second, "31 s without refusals; one of %d", one)
		})
	}
}

// An outage of 20 s does not make the calls slower for long. Before, half as many were out for minutes: 3 min 33 s.
func TestRoomAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		server := &busy{judge: func(int, http.Header) int {
			since := time.Since(begin)
			return map[bool]int{true: 200, false: 429}[since < 5*time.Second || since > 25*time.Second]
		}}
		took := many(t, reserve.Must(New(server, nil, WithRetries(99))), 16000)
		require.Less(t, took, 150*time.Second, "120 s are the best")
	})
}

// After a stop one call goes first. While it is refused nobody else is sent.
func TestOneGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		server := &busy{judge: func(_ int, h http.Header) int {
			h.Set("Retry-After", "5")
			return map[bool]int{true: 200, false: 429}[time.Since(begin) > 12*time.Second]
		}}
		many(t, reserve.Must(New(server, nil, WithRetries(9))), 16)
		require.Equal(t, 16+2, server.denied)
	})
}

// With 20 left, 16 callers don't send more than 20: what is out counts. The rest goes when the window is over.
func TestRemainingIsCountedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, left := time.Now(), 0
		server := &busy{judge: func(_ int, h http.Header) int {
			if now := time.Now(); !now.Before(end) {
				end, left = now.Truncate(time.Minute).Add(time.Minute), 50
			}
			h.Set("X-RateLimit-Limit", "50")
			h.Set("X-RateLimit-Reset", fmt.Sprint(end.Unix()))
			status := 429
			if left > 0 {
				left--
				status = 200
			}
			h.Set("X-RateLimit-Remaining", fmt.Sprint(left))
			return status
		}}
		tr := reserve.Must(New(server, nil, WithRetries(9)))
		many(t, tr, 1000)
		require.Zero(t, server.denied, "of %d calls", server.calls)
	})
}
