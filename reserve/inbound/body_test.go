package inbound_test

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// A client that goes away after it has sent a body gives its place back at once, if the body is small and its length is
// known. Otherwise net/http does not see that it has left.
func TestClientsThatGoAwayAfterABody(t *testing.T) {
	const small = 64 << 10
	for name, c := range map[string]struct {
		body   io.Reader
		expect string
		gone   bool
	}{
		"a byte":           {strings.NewReader("x"), "", true},
		"64 KiB":           {bytes.NewReader(make([]byte, small)), "", true},
		"larger":           {bytes.NewReader(make([]byte, small+1)), "", false},
		"of no length":     {io.MultiReader(strings.NewReader("x")), "", false},
		"only if accepted": {strings.NewReader("x"), "100-continue", false},
	} {
		bubble(t, func(t *testing.T) {
			l := reserve.Must(pace.NewBursty(0.1))
			m := build(t, []inbound.Tier{inbound.GlobalBy("global", l)}, inbound.WithQueue(time.Minute, 5))
			client := serve(t, m.Handler(ok))
			res, err := client.Get("http://pipe/")
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			next := l.NextFree()

			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "POST", "http://pipe/", c.body)
			require.NoError(t, err)
			if c.expect != "" {
				r.Header.Set("Expect", c.expect)
			}
			done := make(chan error)
			go func() {
				_, err := client.Do(r)
				done <- err
			}()
			time.Sleep(300 * time.Millisecond)
			require.Equal(t, 1, m.Stats().Waiting, name)
			require.Equal(t, next.Add(10*s), l.NextFree(), name)
			cancel()
			require.True(t, errors.Is(<-done, context.Canceled))
			synctest.Wait()
			if c.gone {
				require.Equal(t, next, l.NextFree(), name)
				require.EqualValues(t, 1, m.Stats().Gone, name)
			} else {
				require.Equal(t, next.Add(10*s), l.NextFree(), name)
				require.Equal(t, 1, m.Stats().Waiting, name)
			}
			time.Sleep(time.Minute)
		})
	}
}

// The handler reads the body that the client sent, also if it comes in pieces, before and after the request's turn.
func TestABodyThatWaits(t *testing.T) {
	want := strings.Repeat("0123456789abcdef", 4<<10)
	for _, pieces := range []int{1, 2, 64} {
		bubble(t, func(t *testing.T) {
			l := reserve.Must(pace.NewBursty(1))
			served := time.Duration(0)
			begin := time.Now()
			client := serve(t, build(t, []inbound.Tier{inbound.GlobalBy("global", l)}, inbound.WithQueue(time.Minute, 5)).
				Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					served = time.Since(begin)
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Error(n, err)
					}
					if err := r.Body.Close(); err != nil {
						t.Error(err)
					}
					_, _ = w.Write(body)
				})))
			l.TryAcquire(1)
			sent, body := io.Pipe()
			r, err := http.NewRequest("POST", "http://pipe/", sent)
			require.NoError(t, err)
			r.ContentLength = int64(len(want))
			go func() {
				for i := range pieces {
					if i > 0 {
						time.Sleep(100 * time.Millisecond)
					}
					_, _ = io.WriteString(body, want[i*len(want)/pieces:(i+1)*len(want)/pieces])
				}
				body.Close()
			}()
			res, err := client.Do(r)
			require.NoError(t, err)
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.True(t, want == string(got))
			synctest.Wait()
			require.Equal(t, s, served, "the handler does not wait for the body")
		})
	}
}

// A body that breaks off is an error when the handler reads it.
func TestABodyThatBreaksOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1))
		broken := errors.New("broken")
		var got error
		h := build(t, []inbound.Tier{inbound.GlobalBy("global", l)}, inbound.WithQueue(time.Minute, 5)).
			Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body []byte
				body, got = io.ReadAll(r.Body)
				require.Equal(t, "begin", string(body))
			}))
		l.TryAcquire(1)
		r := get("", "/")
		r.ContentLength = 10
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("begin"), breaks{broken}))
		require.Equal(t, 200, status(h, r))
		require.Equal(t, broken, got)
	})
}

type breaks struct{ err error }

func (b breaks) Read([]byte) (int, error) { return 0, b.err }
