package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var (
	ctx     = context.Background()
	errFull = errors.New("the disk is full")
	errGone = errors.New("the caller has gone")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test with a limiter that saves nothing, so that what was taken in all can be
// told from when it is free again. Its clock is that of the bubble, where waiting takes no time.
func inBubble(t *testing.T, rate float64, f func(b *limitertest.Bench)) {
	synctest.Test(t, func(t *testing.T) {
		f(&limitertest.Bench{T: t, Limiter: reserve.Must(pace.NewBursty(rate, pace.WithBurst(0))), Begin: time.Now()})
	})
}

// passed is the time since the beginning.
func passed(b *limitertest.Bench) time.Duration { return time.Since(b.Begin) }

// content is n bytes, none like the ones around it.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// Types that hide all but Read or Write.
type (
	plainReader struct{ io.Reader }
	plainWriter struct{ io.Writer }
)

// sizes notes how much is asked of a Reserver at a time. It hides its rate.
type sizes struct {
	reserve.Reserver
	asked []int
}

func (s *sizes) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	s.asked = append(s.asked, n)
	return s.Reserver.ReserveWithin(ctx, n, maxWait)
}

// rated is one that does tell its rate.
type rated struct{ sizes }

func (r *rated) Rate() float64 { return r.Reserver.(*reserve.Limiter).Rate() }

// Every way to copy, from everything that can be read, takes the time that its bytes take, and the bytes
// are the same.
func TestEveryWayIsPaced(t *testing.T) {
	want := content(10_000)
	sources := map[string]func() io.Reader{
		"WriterTo": func() io.Reader { return bytes.NewReader(want) },
		"plain":    func() io.Reader { return plainReader{bytes.NewReader(want)} },
	}
	ways := map[string]func(by reserve.Reserver, from io.Reader) ([]byte, error){
		"Read": func(by reserve.Reserver, from io.Reader) ([]byte, error) {
			return io.ReadAll(stream.Reader(ctx, from, by))
		},
		"Copy from Reader": func(by reserve.Reserver, from io.Reader) ([]byte, error) {
			var to bytes.Buffer
			_, err := io.Copy(plainWriter{&to}, stream.Reader(ctx, from, by))
			return to.Bytes(), err
		},
		"Copy from Reader to ReaderFrom": func(by reserve.Reserver, from io.Reader) ([]byte, error) {
			var to bytes.Buffer
			_, err := io.Copy(&to, stream.Reader(ctx, from, by))
			return to.Bytes(), err
		},
		"Copy to Writer": func(by reserve.Reserver, from io.Reader) ([]byte, error) {
			var to bytes.Buffer
			_, err := io.Copy(stream.Writer(ctx, plainWriter{&to}, by), from)
			return to.Bytes(), err
		},
		"Copy to Writer of ReaderFrom": func(by reserve.Reserver, from io.Reader) ([]byte, error) {
			var to bytes.Buffer
			_, err := io.Copy(stream.Writer(ctx, &to, by), from)
			return to.Bytes(), err
		},
		"Write": func(by reserve.Reserver, from io.Reader) ([]byte, error) {
			var to bytes.Buffer
			all, _ := io.ReadAll(from)
			n, err := stream.Writer(ctx, &to, by).Write(all)
			require.Equal(t, len(all), n)
			return to.Bytes(), err
		},
	}
	for from, source := range sources {
		for how, way := range ways {
			t.Run(how+", "+from, func(t *testing.T) {
				inBubble(t, 1000, func(b *limitertest.Bench) {
					got, err := way(b, source())
					require.NoError(b, err)
					require.Equal(b, want, got)
					require.Equal(b, 10*s, b.FreeAt(), "a permit for each byte")
					require.GreaterOrEqual(b, passed(b), 9900*ms, "all but the last tenth of a second")
					require.LessOrEqual(b, passed(b), 10*s)
				})
			})
		}
	}
}

// Two streams share one limiter's rate.
func TestSharing(t *testing.T) {
	inBubble(t, 1000, func(b *limitertest.Bench) {
		errs := make(chan error, 2)
		for range cap(errs) {
			go func() {
				_, err := io.Copy(io.Discard, stream.Reader(ctx, bytes.NewReader(content(3000)), b))
				errs <- err
			}()
		}
		time.Sleep(2950 * ms)
		synctest.Wait()
		require.Equal(b, 3200*ms, b.FreeAt(), "one step is under way until 3 s, and one each is promised")
		require.NoError(b, <-errs)
		require.NoError(b, <-errs)
		require.Equal(b, 6*s, b.FreeAt())
		require.Equal(b, 5900*ms, passed(b))
	})
}

// No step borrows more than a tenth of a second's worth, and none is smaller than it need be.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		rate    float64
		largest int
	}{
		{5, 1}, {10, 1}, {99, 9}, {1000, 100}, {100_000, 10_000}, {1 << 20, 32 << 10},
		{32 << 20, 33554}, {1 << 30, 1073741},
	} {
		synctest.Test(t, func(t *testing.T) {
			by := &rated{sizes{Reserver: reserve.Must(pace.NewBursty(tt.rate))}}
			size := 3*tt.largest + 1
			n, err := stream.Writer(ctx, io.Discard, by).Write(make([]byte, size))
			require.NoError(t, err)
			require.Equal(t, size, n)
			last := size - 3*tt.largest
			require.Equal(t, []int{tt.largest, tt.largest, tt.largest, last}, by.asked, "at %v/s", tt.rate)
			require.LessOrEqual(t, float64(tt.largest), max(1, tt.rate/10))
		})
	}
}

// Of a Reserver that has no rate to tell, 4 KiB are asked for.
func TestStepsAtAnUnknownRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := &sizes{Reserver: reserve.Must(pace.NewBursty(1 << 20))}
		_, err := stream.Writer(ctx, io.Discard, by).Write(make([]byte, 10_000))
		require.NoError(t, err)
		require.Equal(t, []int{4096, 4096, 1808}, by.asked)
	})
}
