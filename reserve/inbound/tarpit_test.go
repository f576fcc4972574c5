package inbound_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

func TestTarpit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{inbound.Global("global", bucket(0.01, 0))}, inbound.WithTarpit(3*s, 4), inbound.WithJitter(0))
		h := m.Handler(ok)
		begin := time.Now()
		var mu sync.Mutex
		var answered []string
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 10 {
			all.Go(func() {
				r := get("", "/")
				if i == 0 {
					r = r.WithContext(ctx)
				}
				res := do(h, r)
				mu.Lock()
				defer mu.Unlock()
				answered = append(answered, fmt.Sprint(res.StatusCode, " at ", time.Since(begin), " retry after ", res.Header.Get("Retry-After")))
			})
			synctest.Wait()
		}
		require.Len(t, answered, 6, "at once")
		time.Sleep(s)
		cancel() // the first one goes away, and makes room
		synctest.Wait()
		require.Len(t, answered, 7)
		all.Go(func() { do(h, get("", "/")) })
		synctest.Wait()
		all.Wait()
		require.Equal(t, 4*s, time.Since(begin))
		slices.Sort(answered)
		for i, line := range answered {
			switch {
			case i < 6:
				require.Contains(t, line, "429 at 0s retry after ")
			case i == 6:
				require.Equal(t, "429 at 1s retry after 99", line, "its context ended")
			default:
				require.Equal(t, "429 at 3s retry after 97", line)
			}
		}
		require.Equal(t, uint64(5), m.Stats().Delayed)
		require.Equal(t, uint64(1), m.Stats().Gone)
	})
}

// A client that sends no more may still read: a refusal that is delayed is sent at once then, and a
// context that has ended does not make something else of it.
func TestTarpitAndAHalfClosedConnection(t *testing.T) {
	watchdog.Start(t)
	for _, first := range []bool{false, true} { // whether the context ends before the delay begins
		half := make(chan *net.TCPConn, 1)
		refuses := reserverOf(func(ctx context.Context) error {
			if err := (<-half).CloseWrite(); err != nil {
				t.Error(err)
			}
			if first {
				<-ctx.Done()
			}
			return &reserve.WaitError{Wait: 100 * s}
		})
		m := build(t, []inbound.Tier{inbound.GlobalBy("global", refuses)}, inbound.WithTarpit(time.Hour, 1), inbound.WithJitter(0))
		conn, err := net.Dial("tcp", server(t, m.Handler(ok)).Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		half <- conn.(*net.TCPConn)
		_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer res.Body.Close()
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		require.Equal(t, "100", res.Header.Get("Retry-After"))
		problemOf(t, res)
		require.Equal(t, inbound.Stats{Gone: 1, Delayed: 1, Tiers: []inbound.TierStats{{Name: "global", Refused: 1}}}, counts(m))
	}
}
