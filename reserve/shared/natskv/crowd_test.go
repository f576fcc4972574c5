package natskv

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Up to 32 processes that do nothing else try less than three times for each write that counts, and a process that is
// alone does not wait.
func TestCrowd(t *testing.T) {
	for _, processes := range []int{1, 2, 8, 32} {
		synctest.Test(t, func(t *testing.T) {
			const trip = time.Millisecond
			var version, tried, written, longest atomic.Int64
			begin := time.Now()
			for range processes {
				go func() {
					var c crowd
					lost, since := 0, time.Now()
					for time.Since(begin) < 10*time.Second {
						c.wait(t.Context(), "key", lost)
						from := time.Now()
						time.Sleep(trip / 2)
						was := version.Load()
						time.Sleep(trip)
						won := version.CompareAndSwap(was, was+1)
						tried.Add(1)
						if won {
							written.Add(1)
							took := time.Since(since)
							for was := longest.Load(); int64(took) > was && !longest.CompareAndSwap(was, int64(took)); {
								was = longest.Load()
							}
							lost, since = 0, time.Now()
						} else {
							lost++
						}
						time.Sleep(trip / 2)
						c.tried("key", won, time.Since(from))
					}
				}()
			}
			time.Sleep(11 * time.Second)
			synctest.Wait()
			tries := float64(tried.Load()) / float64(written.Load())
			t.Logf("%d processes: %.2f tries for each write that counts, %d writes a second, the slowest took %v", processes, tries,
				written.Load()/10, time.Duration(longest.Load()))
			require.Less(t, tries, 3.0)
			require.GreaterOrEqual(t, written.Load()/10, int64(150))
		})
	}
}
