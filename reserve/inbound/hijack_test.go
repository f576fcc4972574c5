package inbound_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// A handler that takes the connection over gets the body of a request that waited, as it gets that of
// one that did not: whether the body was there before, comes meanwhile, or was read in part.
func TestHijackAfterTheQueue(t *testing.T) {
	for _, c := range []struct {
		name            string
		waits           bool
		pause           time.Duration // between the two halves of the body
		readBefore      int
		throughTheField bool
	}{
		{"at once", false, 0, 0, false},
		{"waited", true, 0, 0, false},
		{"by a ResponseController", true, 0, 0, true},
		{"the body comes later", true, 3 * s, 0, false},
		{"a part was read", true, 0, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
				got := make(chan string, 1)
				h := build(t, []inbound.Tier{inbound.GlobalBy("global", limiter)}, inbound.WithQueue(time.Minute, 5)).
					Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						part := make([]byte, c.readBefore)
						_, _ = io.ReadFull(r.Body, part)
						var conn net.Conn
						var rw *bufio.ReadWriter
						var err error
						if c.throughTheField {
							conn, rw, err = http.NewResponseController(w).Hijack()
						} else {
							conn, rw, err = w.(http.Hijacker).Hijack()
						}
						if err != nil {
							got <- err.Error()
							return
						}
						defer conn.Close()
						_ = conn.SetReadDeadline(time.Now().Add(10 * s))
						body := make([]byte, 10-c.readBefore)
						n, err := io.ReadFull(rw, body)
						got <- fmt.Sprint(string(part)+string(body[:n]), err)
						_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n")
						_ = rw.Flush()
					}))
				l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				server := &http.Server{Handler: h}
				done := make(chan error)
				go func() { done <- server.Serve(l) }()
				if c.waits {
					require.True(t, limiter.TryAcquire(1))
				}
				conn, err := l.dial(context.Background(), "", "")
				require.NoError(t, err)
				_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n01")
				require.NoError(t, err)
				time.Sleep(c.pause)
				_, err = io.WriteString(conn, "234")
				require.NoError(t, err)
				go func() { _, _ = io.WriteString(conn, "after") }()
				require.Equal(t, "01234after<nil>", strings.ReplaceAll(<-got, " ", ""))
				answer, _ := io.ReadAll(conn)
				require.Contains(t, string(answer), "101")
				require.NoError(t, server.Close())
				<-done
				synctest.Wait()
			})
		})
	}
}

// As of any other request, a closed body gives no more data.
func TestABodyThatWaitedAndIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		var n int
		var err error
		client := serve(t, build(t, []inbound.Tier{inbound.GlobalBy("global", limiter)}, inbound.WithQueue(time.Minute, 5)).
			Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				require.NoError(t, r.Body.Close())
				n, err = r.Body.Read(make([]byte, 3))
			})))
		limiter.TryAcquire(1)
		res, got := client.Post("http://pipe/", "", strings.NewReader("hello"))
		require.NoError(t, got)
		require.NoError(t, res.Body.Close())
		require.Zero(t, n)
		require.Equal(t, http.ErrBodyReadAfterClose, err)
	})
}

// One client that sends far too much leaves places in the queue for clients that wait a little.
func TestOneClientDoesNotFillTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{
			inbound.PerKey("user", user, bucket(1, 2)), inbound.Global("global", bucket(100, 100)),
		}, inbound.WithQueue(30*s, 20))
		h := m.Handler(ok)
		statuses := make(chan int, 300)
		send := func(user string) {
			go func() { statuses <- status(h, get(user, "/")) }()
			synctest.Wait()
		}
		for range 200 {
			send("abuser")
		}
		require.Equal(t, 10, m.Stats().Waiting, "as many as places are left")
		honest := make(chan int, 30)
		for i := range 10 {
			for range 3 {
				go func() { honest <- status(h, get(fmt.Sprint("user ", i), "/")) }()
				synctest.Wait()
			}
		}
		for range 30 {
			require.Equal(t, 200, <-honest)
		}
		time.Sleep(time.Minute)
		require.Zero(t, m.Stats().Waiting)
	})
}
