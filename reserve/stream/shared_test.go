package stream

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A dribble gives 100 bytes at a time, without end.
type dribble struct{}

func (dribble) Read(p []byte) (int, error) { return min(100, len(p)), nil }

// Readers that share a limiter get its rate together, though none of them knows how
// much its source will give: what a short read gives back is used at once.
func TestShortReadsOfReadersThatShareALimiter(t *testing.T) {
	for _, readers := range []int{1, 2, 8} {
		const rate = 1 << 20
		got := together(t, readers, dribble{}, 2*time.Second, pace.WithBurst(0))
		require.InDelta(t, rate, got, 0.001*rate, "%d readers", readers)
	}
}

// A slow source gives 1400 bytes at a time, 10 ms after it was asked.
type slow struct{}

func (slow) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return min(1400, len(p)), nil
}

// Readers that wait for their sources meanwhile hold the permits of what these will give, and little more.
func TestReadersThatWaitForTheirSourcesShareALimiter(t *testing.T) {
	const rate = 1 << 20
	require.Greater(t, together(t, 32, slow{}, 10*time.Second, pace.WithBurst(0)), 0.9*rate)
	require.Greater(t, together(t, 32, slow{}, 10*time.Second, pace.WithBurst(100*time.Millisecond)), 0.99*rate)
}

// together returns how many bytes a second readers get that share a limiter of 1 MiB/s.
func together(t *testing.T, readers int, source io.Reader, during time.Duration, opts ...reserve.Option) (rate float64) {
	synctest.Test(t, func(t *testing.T) {
		by := reserve.Must(pace.NewBursty(1<<20, opts...))
		begin := time.Now()
		read := make(chan int)
		for range readers {
			go func() {
				r, buffer, sum := Reader(t.Context(), source, by), make([]byte, 32<<10), 0
				for time.Since(begin) < during {
					n, err := r.Read(buffer)
					if err != nil {
						t.Error(err)
					}
					sum += n
				}
				read <- sum
			}()
		}
		sum := 0
		for range readers {
			sum += <-read
		}
		rate = float64(sum) / time.Since(begin).Seconds()
	})
	return rate
}

// All of several limiters has the rate of the slowest: a step borrows a tenth of that.
func TestAllHasARate(t *testing.T) {
	by := reserve.All(reserve.Must(pace.NewBursty(1e6)), reserve.Must(pace.NewBursty(100)))
	n, err := Reader(t.Context(), dribble{}, by).Read(make([]byte, 4096))
	require.NoError(t, err)
	require.Equal(t, 10, n)
}

// Writers share a limiter by steps: who writes little at a time gets little.
func TestWritersShareBySteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewBursty(1<<20, pace.WithBurst(0)))
		sizes := []int{100, 4 << 10, 32 << 10, 1 << 20}
		written := make([]atomic.Int64, len(sizes))
		short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for i := range 32 {
			kind := i % len(sizes)
			all.Go(func() {
				w := Writer(short, io.Discard, limiter)
				for err := error(nil); err == nil; {
					var n int
					n, err = w.Write(make([]byte, sizes[kind]))
					written[kind].Add(int64(n))
				}
			})
		}
		all.Wait()
		for i := range sizes {
			share := 100 * float64(written[i].Load()) / (30 << 20)
			t.Logf("%7d bytes: %.2f %%", sizes[i], share)
			want := []float64{0.14, 5.9, 46.9, 46.9}[i]
			require.InDelta(t, want, share, want*0.05)
		}
	})
}
