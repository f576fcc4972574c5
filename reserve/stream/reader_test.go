package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
	"github.com/nextfree/pace/reserve/window"
)

func TestReaderIsAReader(t *testing.T) {
	for name, source := range map[string]func(io.Reader) io.Reader{
		"as it is": func(r io.Reader) io.Reader { return r },
		"one byte": iotest.OneByteReader,
		"half":     iotest.HalfReader,
		"data err": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1000, func(b *limitertest.Bench) {
				want := content(500)
				r := stream.Reader(ctx, source(bytes.NewReader(want)), b)
				require.NoError(b, iotest.TestReader(r, want))
				require.Equal(b, s/2, b.FreeAt())
			})
		})
	}
}

// What a Read does not get is not paid for, however little it is, and keeps no other waiting.
func TestShortReadsRefund(t *testing.T) {
	inBubble(t, 1000, func(b *limitertest.Bench) {
		r := stream.Reader(ctx, iotest.OneByteReader(bytes.NewReader(content(50))), b)
		buffer := make([]byte, 4096)
		for i := range 50 {
			n, err := r.Read(buffer)
			require.NoError(b, err)
			require.Equal(b, 1, n)
			require.Equal(b, time.Duration(i)*ms, passed(b))
			require.Equal(b, time.Duration(i+1)*ms, b.FreeAt())
		}
		n, err := r.Read(buffer)
		require.Zero(b, n)
		require.Equal(b, io.EOF, err)
		require.Equal(b, 50*ms, b.FreeAt(), "the end costs nothing")
	})
}

func TestReaderPassesErrors(t *testing.T) {
	inBubble(t, 1000, func(b *limitertest.Bench) {
		n, err := stream.Reader(ctx, iotest.ErrReader(errFull), b).Read(make([]byte, 10))
		require.Zero(b, n)
		require.Same(b, errFull, err)
		require.Zero(b, b.FreeAt())

		source := iotest.DataErrReader(io.MultiReader(bytes.NewReader(content(10)), iotest.ErrReader(errFull)))
		n, err = stream.Reader(ctx, source, b).Read(make([]byte, 20))
		require.Equal(b, 10, n, "with the bytes that came with it")
		require.Same(b, errFull, err)
		require.Equal(b, 10*ms, b.FreeAt())

		source = io.MultiReader(bytes.NewReader(content(10)), iotest.ErrReader(errFull))
		copied, err := io.Copy(io.Discard, stream.Reader(ctx, source, b))
		require.EqualValues(b, 10, copied)
		require.Same(b, errFull, err)
		require.Equal(b, 20*ms, b.FreeAt())

		copied, err = io.Copy(plainWriter{&shortWriter{left: 7, err: errFull}}, stream.Reader(ctx, plainReader{bytes.NewReader(content(50))}, b))
		require.EqualValues(b, 7, copied)
		require.Same(b, errFull, err)
		require.Equal(b, 27*ms, b.FreeAt(), "what could not be written is not paid for")
	})
}

func TestEmptyRead(t *testing.T) {
	inBubble(t, 1, func(b *limitertest.Bench) {
		n, err := stream.Reader(ctx, untouched{t}, b).Read(nil)
		require.Zero(b, n)
		require.NoError(b, err)
		require.Zero(b, b.FreeAt())
	})
}

// A source that must not be asked.
type untouched struct{ *testing.T }

func (u untouched) Read([]byte) (int, error)  { u.Fatal("read"); return 0, nil }
func (u untouched) Write([]byte) (int, error) { u.Fatal("written"); return 0, nil }

func TestContextsThatAreOver(t *testing.T) {
	inBubble(t, 10, func(b *limitertest.Bench) {
		gone, cancel := context.WithCancelCause(ctx)
		cancel(errGone)
		near, stop := context.WithTimeout(ctx, s)
		defer stop()
		_, err := b.Reserve(ctx, 20)
		require.NoError(b, err)
		for name, do := range map[string]func(context.Context) error{
			"Read": func(ctx context.Context) error {
				_, err := stream.Reader(ctx, untouched{t}, b).Read(make([]byte, 1))
				return err
			},
			"Write": func(ctx context.Context) error {
				_, err := stream.Writer(ctx, untouched{t}, b).Write(make([]byte, 1))
				return err
			},
			"WriteTo": func(ctx context.Context) error {
				_, err := io.Copy(io.Discard, stream.Reader(ctx, untouched{t}, b))
				return err
			},
			"ReadFrom": func(ctx context.Context) error {
				_, err := io.Copy(stream.Writer(ctx, io.Discard, b), untouched{t})
				return err
			},
		} {
			require.Same(b, errGone, do(gone), name)
			var wait *reserve.WaitError
			err := do(near)
			require.ErrorAs(b, err, &wait, name)
			require.ErrorIs(b, err, context.DeadlineExceeded, name)
			require.Equal(b, 2*s, wait.Wait)
			require.Equal(b, 2*s, b.FreeAt(), "nothing was taken")
		}
		require.Zero(b, passed(b))
	})
}

// A context that ends while a step waits.
func TestContextEndsAWait(t *testing.T) {
	inBubble(t, 100, func(b *limitertest.Bench) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(250*ms, func() { cancel(errGone) })
		var to bytes.Buffer
		n, err := stream.Writer(ctx, &to, b).Write(content(1000))
		require.Same(b, errGone, err)
		require.Equal(b, 30, n, "at 0, 100 and 200 ms")
		require.Equal(b, content(1000)[:30], to.Bytes())
		require.Equal(b, 250*ms, passed(b))
		require.Equal(b, 300*ms, b.FreeAt())

		n, err = stream.Reader(ctx, untouched{t}, b).Read(to.Bytes())
		require.Zero(b, n)
		require.Same(b, errGone, err)
	})
}

// Without limit a context that is over ends everything as well.
func TestContextsThatAreOverWithoutLimit(t *testing.T) {
	inBubble(t, math.Inf(1), func(b *limitertest.Bench) {
		gone, cancel := context.WithCancelCause(ctx)
		cancel(errGone)
		for name, do := range everyWay(untouched{t}, untouched{t}) {
			n, err := do(gone, b)
			require.Same(b, errGone, err, name)
			require.Zero(b, n, name)
		}
	})
}

// everyWay returns all ways to move bytes.
func everyWay(from io.Reader, to io.Writer) map[string]func(context.Context, reserve.Reserver) (int64, error) {
	return map[string]func(context.Context, reserve.Reserver) (int64, error){
		"Read": func(ctx context.Context, by reserve.Reserver) (int64, error) {
			n, err := stream.Reader(ctx, from, by).Read(make([]byte, 100))
			return int64(n), err
		},
		"Write": func(ctx context.Context, by reserve.Reserver) (int64, error) {
			n, err := stream.Writer(ctx, to, by).Write(make([]byte, 100))
			return int64(n), err
		},
		"WriteTo": func(ctx context.Context, by reserve.Reserver) (int64, error) {
			return stream.Reader(ctx, from, by).(io.WriterTo).WriteTo(to)
		},
		"ReadFrom": func(ctx context.Context, by reserve.Reserver) (int64, error) {
			return stream.Writer(ctx, to, by).(io.ReaderFrom).ReadFrom(from)
		},
	}
}

// If the permits of a later step can't be had, the bytes before that are counted: they have been moved.
func TestCountWhenPayingFails(t *testing.T) {
	for _, source := range []struct {
		name string
		make func() io.Reader
	}{
		{"plain", func() io.Reader { return plainReader{bytes.NewReader(content(100))} }},
		{"WriterTo", func() io.Reader { return bytes.NewReader(content(100)) }},
	} {
		for _, way := range []string{"Write", "WriteTo", "ReadFrom"} {
			t.Run(way+", "+source.name, func(t *testing.T) {
				inBubble(t, 100, func(b *limitertest.Bench) { // steps of 10
					var to bytes.Buffer
					gone, cancel := context.WithCancelCause(ctx)
					time.AfterFunc(250*ms, func() { cancel(errGone) })
					n, err := everyWay(source.make(), plainWriter{&to})[way](gone, b)
					require.Same(b, errGone, err)
					require.EqualValues(b, 30, n, "at 0, 100 and 200 ms")
					require.Equal(b, 30, to.Len())

					to.Reset()
					near, stop := context.WithTimeout(ctx, 150*ms)
					defer stop()
					n, err = everyWay(source.make(), plainWriter{&to})[way](near, b)
					require.ErrorIs(b, err, context.DeadlineExceeded)
					require.EqualValues(b, 20, n, "at 300 ms and 400 ms")
					require.Equal(b, 20, to.Len())
				})
			})
		}
	}
}

// onceShort gives one byte, and then all that is asked for.
type onceShort struct{ n int }

func (o *onceShort) Read(p []byte) (int, error) {
	if o.n++; o.n == 2 {
		return 1, nil
	}
	return len(p), nil
}

// After a short read the steps begin small, and grow by an eighth each until they are whole again.
func TestStepsGrowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := &rated{sizes{Reserver: reserve.Must(pace.NewBursty(1 << 20))}}
		r, buffer := stream.Reader(ctx, &onceShort{}, by), make([]byte, 1<<20)
		for range 100 {
			_, err := r.Read(buffer)
			require.NoError(t, err)
		}
		require.Equal(t, []int{32 << 10, 32 << 10, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}, by.asked[:13])
		require.Less(t, by.asked[60], 10_000)
		require.Equal(t, 32<<10, by.asked[90])
	})
}

// A window that holds less than a step is asked for what it holds, alone or with others.
func TestSmallWindow(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "all": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var by reserve.Reserver = reserve.Must(window.New(100, 10*ms))
				if !alone {
					by = reserve.All(reserve.Must(pace.NewBursty(1e9)), reserve.Must(window.New(300, ms)), by)
				}
				n, err := stream.Writer(ctx, io.Discard, by).Write(make([]byte, 1000))
				require.NoError(t, err)
				require.Equal(t, 1000, n)
				require.Equal(t, 90*ms, time.Since(begin))
			})
		})
	}
	by := refusing{errors.New("no")}
	_, err := stream.Reader(ctx, untouched{t}, by).Read(make([]byte, 1))
	require.Same(t, by.error, err)
}

// refusing is a Reserver that refuses.
type refusing struct{ error }

func (r refusing) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, r.error
}

// A source or a sink that panics gives its step's permits back.
func TestPanicsGiveBack(t *testing.T) {
	for name, do := range map[string]func(by reserve.Reserver){
		"Read": func(by reserve.Reserver) { _, _ = stream.Reader(ctx, panicking{}, by).Read(make([]byte, 100)) },
		"WriteTo": func(by reserve.Reserver) {
			_, _ = io.Copy(plainWriter{io.Discard}, stream.Reader(ctx, panicking{}, by))
		},
		"Write": func(by reserve.Reserver) { _, _ = stream.Writer(ctx, panicking{}, by).Write(make([]byte, 100)) },
		"ReadFrom": func(by reserve.Reserver) {
			_, _ = io.Copy(stream.Writer(ctx, panicking{}, by), plainReader{bytes.NewReader(content(100))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1000, func(b *limitertest.Bench) {
				require.PanicsWithValue(b, "broken", func() { do(b) })
				require.Zero(b, b.FreeAt())
			})
		})
	}
}

// panicking is a source and a sink that panics.
type panicking struct{}

func (panicking) Read([]byte) (int, error)  { panic("broken") }
func (panicking) Write([]byte) (int, error) { panic("broken") }
