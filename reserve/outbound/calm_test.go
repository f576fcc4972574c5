package outbound

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// How net/http words a refusal by HTTP/2.
const (
	reset    = "stream error: stream ID 47; ENHANCE_YOUR_CALM; received from peer"
	rejected = "stream error: stream ID 47; REFUSED_STREAM; received from peer"
	goAway   = `http2: server sent GOAWAY and closed the connection; LastStreamID=795, ErrCode=ENHANCE_YOUR_CALM, debug=""`
)

func TestIsRefusal(t *testing.T) {
	for text, want := range map[string]bool{
		reset:                        true,
		goAway:                       true,
		`Post "http://a/": ` + reset: true,
		"stream error: stream ID 47; INTERNAL_ERROR; received from peer":                                                           false,
		"stream error: stream ID 47; ENHANCE_YOUR_CALM":                                                                            false,
		`http2: server sent GOAWAY and closed the connection; LastStreamID=7, ErrCode=NO_ERROR, debug="ErrCode=ENHANCE_YOUR_CALM"`: false,
		`http2: server sent GOAWAY and closed the connection; LastStreamID=7, ErrCode=ENHANCE_YOUR_CALM, debug="too_many_pings"`:   false,
		"ENHANCE_YOUR_CALM": false,
		rejected:            true,
		"http2: Transport: cannot retry err [" + rejected + "] after Request.Body was written; define Request.GetBody to avoid this error": true,
		"stream error: stream ID 47; REFUSED_STREAM": false,
		"H3_EXCESSIVE_LOAD":                          true,
		"H3_REQUEST_REJECTED: busy":                  true,
		"H3_EXCESSIVE_LOAD (local)":                  false,
		"H3_INTERNAL_ERROR":                          false,
	} {
		require.Equal(t, want, isRefusal(errors.New(text)), text)
	}
}

// A server that speaks HTTP/2 and answers each request with a frame.
func calmServer(t *testing.T, frame func(stream uint32) []byte) *http.Client {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveCalmly(conn, frame)
		}
	}()
	base := &http.Transport{DialContext: (&net.Dialer{}).DialContext, Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	base.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: rebase{base, listener.Addr().String()}}
}

type rebase struct {
	base http.RoundTripper
	host string
}

func (b rebase) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = b.host
	return b.base.RoundTrip(r)
}

func serveCalmly(conn net.Conn, frame func(stream uint32) []byte) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, 24); err != nil { // the preface
		return
	}
	conn.Write(h2Frame(4, 0, nil)) // settings
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return
		}
		if head[3] == 1 { // headers
			conn.Write(frame(binary.BigEndian.Uint32(head[5:])))
		}
	}
}

func h2Frame(kind byte, stream uint32, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0, 0, byte(len(payload)), kind, 0}, stream), payload...)
}

// Over a real connection: the texts are those of this version of Go.
func TestCalmOverARealConnection(t *testing.T) {
	const enhanceYourCalm = 11
	code := binary.BigEndian.AppendUint32(nil, enhanceYourCalm)
	client := calmServer(t, func(stream uint32) []byte { return h2Frame(3, stream, code) })
	_, err := client.Get("http://a/")
	require.Error(t, err)
	require.True(t, isRefusal(err), "%v", err)
}

// A refusal by HTTP/2 is one without a time: the call waits and goes again, if that can do no harm.
func TestCalm(t *testing.T) {
	for _, c := range []struct {
		text   string
		method string
		opts   []Option
		want   int // attempts
	}{
		{reset, "GET", []Option{WithRetries(3)}, 2},
		{goAway, "GET", []Option{WithRetries(3)}, 2},
		{reset, "POST", []Option{WithRetries(3)}, 1},
		{reset, "POST", []Option{WithRetries(3), RetryNonIdempotent()}, 2},
		{reset, "GET", nil, 1},
		{rejected, "POST", []Option{WithRetries(3)}, 2},
		{"unexpected EOF", "GET", []Option{WithRetries(3)}, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int32
				var throttled int
				hooks := WithHooks(Hooks{Throttled: func(r *http.Response, _ string, after time.Duration) {
					throttled++
					require.Equal(t, 429, r.StatusCode)
				}})
				base := tripper(func(*http.Request) (*http.Response, error) {
					if n.Add(1) == 1 {
						return nil, errors.New(c.text)
					}
					return says(200, ""), nil
				})
				transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(100)), append(c.opts, hooks, WithMaxInFlight(1))...))
				begin := time.Now()
				r, err := transport.RoundTrip(httptest.NewRequest(c.method, "http://a/", nil))
				require.Equal(t, c.want, int(n.Load()))
				require.Equal(t, c.text != "unexpected EOF", throttled == 1)
				if c.want == 1 {
					require.EqualError(t, err, c.text)
				} else {
					require.NoError(t, err)
					require.Equal(t, time.Second, time.Since(begin))
					require.NoError(t, r.Body.Close())
				}
				r, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil)) // the place is free
				require.NoError(t, err)
				require.NoError(t, r.Body.Close())
			})
		})
	}
}

// 400 calls of 40 callers at a server that takes 20 a second, and tells the others by HTTP/2. Before, 275 were lost.
func TestCalmWithAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := reserve.Must(pace.NewTokenBucket(20, 10))
		base := tripper(func(*http.Request) (*http.Response, error) {
			pass(50 * time.Millisecond)
			if !bucket.TryAcquire(1) {
				return nil, errors.New(reset)
			}
			return says(200, ""), nil
		})
		client := &http.Client{Transport: reserve.Must(New(base, nil, Adaptive(), WithRetries(6)))}
		begin := time.Now()
		var lost atomic.Int32
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				for range 10 {
					if status, err := get(client, "http://a/"); err != nil || status != 200 {
						lost.Add(1)
					}
				}
			})
		}
		all.Wait()
		require.Zero(t, lost.Load())
		require.Less(t, time.Since(begin), 30*time.Second) // 19.5 s at best
	})
}
