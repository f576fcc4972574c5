package shared

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
)

// A flapping store fails every k-th call: it refuses it, or it loses the answer. While it is down it refuses all.
type flapping struct {
	Store
	every int
	lost  bool
	down  bool
	mu    sync.Mutex
	calls int
}

func (f *flapping) Update(
	ctx context.Context, key string, decide func(time.Time, []byte) ([]byte, time.Duration, error),
) error {
	f.mu.Lock()
	f.calls++
	fails := f.down || f.every > 0 && f.calls%f.every == 0
	f.mu.Unlock()
	time.Sleep(200 * time.Microsecond)
	if fails && !f.lost {
		return &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	err := f.Store.Update(ctx, key, decide)
	if fails {
		return errors.New("connection reset by peer")
	}
	return err
}

// over returns by how much grants exceed a capacity of 100 and 1000/s in any stretch of time.
func over(granted []time.Time) int {
	slices.SortFunc(granted, time.Time.Compare)
	// The level of a bucket that is never refused: how far it falls below its own highest is what was too much.
	worst, used := 0.0, 0.0
	last := time.Time{}
	for _, at := range granted {
		if !last.IsZero() {
			used = max(0, used-1000*at.Sub(last).Seconds())
		}
		last = at
		used++
		worst = max(worst, used-1-100)
	}
	return int(worst)
}

// flap has the callers of so many processes use a flapping store for a time. It returns by how much they exceeded the
// limit.
func flap(t *testing.T, failOpen bool, processes int, length time.Duration, s *flapping, outage bool) (excess int) {
	mode := Local(1 / float64(processes))
	if failOpen {
		mode = FailOpen()
	}
	synctest.Test(t, func(t *testing.T) {
		s.Store = Memory()
		policy := reserve.Must(pace.Bursty(1000, pace.WithCapacity(100)))
		begin := time.Now()
		var mu sync.Mutex
		var granted []time.Time
		var all sync.WaitGroup
		note := func(ok bool) {
			if ok {
				mu.Lock()
				defer mu.Unlock()
				granted = append(granted, time.Now())
			}
		}
		for range processes {
			l, err := NewIn(s, "flap", policy, mode, WithTimeout(50*time.Millisecond))
			require.NoError(t, err)
			for range 3 {
				all.Go(func() {
					for time.Since(begin) < length {
						_, err := l.Acquire(t.Context(), 1)
						note(err == nil)
						time.Sleep(time.Millisecond)
					}
				})
			}
			all.Go(func() {
				for time.Since(begin) < length {
					ok, _ := l.TryAcquire(t.Context(), 1)
					note(ok)
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		if outage {
			// Not at the moments of probes, or one process would find the store and another would not.
			for n := range int(length / (410 * time.Millisecond)) {
				time.Sleep(205 * time.Millisecond)
				s.mu.Lock()
				s.down = n%2 == 0
				s.mu.Unlock()
				time.Sleep(205 * time.Millisecond)
				s.mu.Lock()
				s.down = false
				s.mu.Unlock()
			}
		}
		all.Wait()
		excess = over(granted)
	})
	return excess
}

// A store that flaps forgives nothing twice: in any stretch of time the processes together have at most a capacity more
// than the limit, however long it goes on. What a process grants without the store is charged as of then, and only the
// store knows what has overflowed since.
func TestFlapping(t *testing.T) {
	lengths := []time.Duration{1200 * time.Millisecond, 5 * time.Second, 20 * time.Second}
	if os.Getenv("PACE_QUEUES") == "" {
		lengths = lengths[:2]
	}
	all := []int{1, 2, 4, 8}
	if limitertest.Slower > 1 {
		lengths, all = lengths[:1], []int{4}
	}
	for _, failOpen := range []bool{true, false} {
		for _, processes := range all {
			for _, f := range []*flapping{{every: 4}, {every: 8}, {every: 30}, {every: 8, lost: true}, {every: 30, lost: true}, {}} {
				outage := f.every == 0
				if outage && failOpen {
					continue // it grants all that is asked for
				}
				row := fmt.Sprintf("FailOpen %v, %d processes, every %d, lost %v:", failOpen, processes, f.every, f.lost)
				for _, length := range lengths {
					f.calls = 0
					excess := flap(t, failOpen, processes, length, f, outage)
					row += fmt.Sprint(" ", excess)
					require.LessOrEqual(t, excess, 100, "%s in %v", row, length)
				}
				t.Log(row)
			}
		}
	}
}
