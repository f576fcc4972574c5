package stream_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

// A shortWriter writes so many bytes more, and then fails; with no error it says nothing.
type shortWriter struct {
	left int
	err  error
}

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

func TestPartialWrites(t *testing.T) {
	for name, tt := range map[string]struct{ err, want error }{
		"an error": {errFull, errFull},
		"silence":  {nil, io.ErrShortWrite},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1000, func(b *limitertest.Bench) {
				n, err := stream.Writer(ctx, &shortWriter{left: 250, err: tt.err}, b).Write(make([]byte, 1000))
				require.Equal(b, 250, n)
				require.Equal(b, tt.want, err)
				require.Equal(b, 250*ms, b.FreeAt(), "the rest is given back")

				copied, err := io.Copy(stream.Writer(ctx, &shortWriter{left: 150, err: tt.err}, b), plainReader{bytes.NewReader(make([]byte, 1000))})
				require.EqualValues(b, 150, copied)
				require.Equal(b, tt.want, err)
				require.Equal(b, 400*ms, b.FreeAt())
			})
		})
	}
}

// liar is a writer that breaks the rules.
type liar int

func (l liar) Write([]byte) (int, error) { return int(l), nil }

func TestLiars(t *testing.T) {
	inBubble(t, 1000, func(b *limitertest.Bench) {
		n, err := stream.Writer(ctx, liar(-5), b).Write(make([]byte, 10))
		require.Zero(b, n)
		require.Equal(b, io.ErrShortWrite, err)
		require.Zero(b, b.FreeAt())
		n, err = stream.Writer(ctx, liar(99), b).Write(make([]byte, 10))
		require.Equal(b, 10, n)
		require.NoError(b, err)
		require.Equal(b, 10*ms, b.FreeAt())
	})
	inBubble(t, 1e6, func(b *limitertest.Bench) {
		n, err := io.Copy(stream.Writer(ctx, twice{}, b), io.LimitReader(strings.NewReader(strings.Repeat("x", 1e6)), 1e6))
		require.EqualValues(b, 2e6, n)
		require.NoError(b, err)
		require.Less(b, b.Snapshot().Granted-b.Snapshot().GivenBack, uint64(1.1e6))
	})
}

// twice is an io.ReaderFrom that counts twice what it reads.
type twice struct{ io.Writer }

func (twice) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(io.Discard, r)
	return 2 * n, err
}

func TestEmptyWrite(t *testing.T) {
	inBubble(t, 1, func(b *limitertest.Bench) {
		n, err := stream.Writer(ctx, liar(3), b).Write(nil)
		require.Equal(b, 3, n, "what it says is up to the writer")
		require.NoError(b, err)
		require.Zero(b, b.FreeAt())
	})
}

// A recorder notes how it was written to.
type recorder struct{ writes []int }

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, len(p))
	return len(p), nil
}

// A reader from notes what it was given.
type readerFrom struct {
	recorder
	limits []int64
}

func (r *readerFrom) ReadFrom(from io.Reader) (int64, error) {
	r.limits = append(r.limits, from.(*io.LimitedReader).N)
	return io.Copy(&r.recorder, from)
}

// What reads by itself gets it step by step, in the form that sendfile is recognized by.
func TestReaderFromGetsSteps(t *testing.T) {
	inBubble(t, 1000, func(b *limitertest.Bench) {
		var to readerFrom
		n, err := io.Copy(stream.Writer(ctx, &to, b), plainReader{bytes.NewReader(make([]byte, 250))})
		require.NoError(b, err)
		require.EqualValues(b, 250, n)
		require.Equal(b, []int64{100, 100, 100}, to.limits)
		require.Equal(b, []int{100, 100, 50}, to.writes)
		require.Equal(b, 200*ms, passed(b))
	})
}

// Without limit a Write is one Write, however large; it waits while the limiter is paused,
// and minds when a limit comes.
func TestWithoutLimit(t *testing.T) {
	inBubble(t, math.Inf(1), func(b *limitertest.Bench) {
		var to recorder
		w := stream.Writer(ctx, &to, b)
		_, err := w.Write(make([]byte, 10<<20))
		require.NoError(b, err)
		require.Equal(b, []int{10 << 20}, to.writes)

		b.PauseUntil(time.Now().Add(s))
		_, err = w.Write(make([]byte, 10))
		require.NoError(b, err)
		require.Equal(b, s, passed(b))

		require.NoError(b, b.SetRate(100))
		_, err = w.Write(make([]byte, 30))
		require.NoError(b, err)
		require.Equal(b, s+200*ms, passed(b))
	})
}

// Real files and connections: the bytes arrive, by whichever way the system moves them.
func TestFilesAndConnections(t *testing.T) {
	watchdog.Start(t)
	want := content(3 << 20)
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, want, 0o600))
	for how, send := range map[string]func(conn net.Conn, file *os.File, by reserve.Reserver) (int64, error){
		"to a Writer": func(conn net.Conn, file *os.File, by reserve.Reserver) (int64, error) {
			return io.Copy(stream.Writer(ctx, conn, by), file)
		},
		"from a Reader": func(conn net.Conn, file *os.File, by reserve.Reserver) (int64, error) {
			return io.Copy(conn, stream.Reader(ctx, file, by))
		},
	} {
		for _, rate := range []float64{math.Inf(1), 1e12} {
			t.Run(how, func(t *testing.T) {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				defer listener.Close()
				conn, err := net.Dial("tcp", listener.Addr().String())
				require.NoError(t, err)
				defer conn.Close()
				other, err := listener.Accept()
				require.NoError(t, err)
				defer other.Close()
				file, err := os.Open(name)
				require.NoError(t, err)
				defer file.Close()

				sent := make(chan error, 1)
				go func() {
					n, err := send(conn, file, reserve.Must(pace.NewBursty(rate)))
					if err == nil && n != int64(len(want)) {
						err = io.ErrShortWrite
					}
					conn.Close()
					sent <- err
				}()
				got, err := io.ReadAll(other)
				require.NoError(t, err)
				require.NoError(t, <-sent)
				require.True(t, bytes.Equal(want, got))
			})
		}
	}
}

// Writes of many at once share the limiter, if what they write to allows it.
func TestWritesAtOnce(t *testing.T) {
	watchdog.Start(t)
	inBubble(t, 1000, func(b *limitertest.Bench) {
		w := stream.Writer(ctx, io.Discard, b)
		errs := make(chan error, 10)
		for range cap(errs) {
			go func() {
				var err error
				for range 10 {
					_, e := w.Write(make([]byte, 10))
					err = errors.Join(err, e)
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(b, <-errs)
		}
		require.Equal(b, s, b.FreeAt())
		require.Equal(b, 990*ms, passed(b))
	})
}

// A lastWord fails with the bytes that it has just written.
type lastWord struct{ recorder }

func (w *lastWord) Write(p []byte) (int, error) {
	n, _ := w.recorder.Write(p)
	return n, errFull
}

func TestAnErrorWithAWholeStep(t *testing.T) {
	inBubble(t, 1000, func(b *limitertest.Bench) {
		var to lastWord
		n, err := io.Copy(stream.Writer(ctx, &to, b), plainReader{bytes.NewReader(make([]byte, 250))})
		require.Equal(b, errFull, err)
		require.EqualValues(b, 100, n)
		require.Equal(b, []int{100}, to.writes)
		require.Equal(b, 100*ms, b.FreeAt())
	})
}
