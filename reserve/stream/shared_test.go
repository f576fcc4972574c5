package stream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A dribble gives 100 bytes at a time, for ever.
type dribble struct{}

func (dribble) Read(p []byte) (int, error) { return min(100, len(p)), nil }

// Readers that share a limiter get its rate together, though none of them knows how
// much its source will give.
func TestShortReadsOfReadersThatShareALimiter(t *testing.T) {
	for _, readers := range []int{1, 2, 8} {
		synctest.Test(t, func(t *testing.T) {
			const rate = 1 << 20
			by := reserve.Must(pace.NewBursty(rate))
			begin := time.Now()
			read := make(chan int)
			for range readers {
				go func() {
					r, buffer, sum := Reader(t.Context(), dribble{}, by), make([]byte, 32<<10), 0
					for time.Since(begin) < 10*time.Second {
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
			require.InDelta(t, rate, float64(sum)/time.Since(begin).Seconds(), 0.1*rate, "%d readers", readers)
		})
	}
}

// All of several limiters has the rate of the slowest: a step borrows a tenth of that.
func TestAllHasARate(t *testing.T) {
	by := reserve.All(reserve.Must(pace.NewBursty(1e6)), reserve.Must(pace.NewBursty(100)))
	n, err := Reader(t.Context(), dribble{}, by).Read(make([]byte, 4096))
	require.NoError(t, err)
	require.Equal(t, 10, n)
}
