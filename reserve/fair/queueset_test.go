package fair_test

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
)

// A flow is one tenant of a scenario: threads that ask for permits, work for a time, think, and ask again.
type flow struct {
	threads, calls int // calls of each thread
	think          time.Duration
	permits        int  // of each call; 0: 1
	late           bool // half of the threads begin when half of the time is over, and make half of the calls
}

// demand is what so many threads of a flow would have if they never waited, in permits in the time of one call's work.
func (f flow) demand(threads int, work time.Duration) float64 {
	return float64(threads*max(1, f.permits)) * float64(work) / float64(work+f.think)
}

// maxMin shares a capacity: who wants less than an equal share gets that, and the others share the rest equally.
func maxMin(capacity float64, demands []float64) []float64 {
	shares := make([]float64, len(demands))
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, demands[a]-demands[b])) })
	for i, of := range order {
		shares[of] = min(demands[of], capacity/float64(len(order)-i))
		capacity -= shares[of]
	}
	return shares
}

// The demands of Kubernetes' API server, of the scenarios in which its queues are fair (k8s.io/apiserver v0.34.2,
// queueset_test.go). A seat for one second there is a permit here. Each flow gets its max-min share, with at most the
// margin that they allow: 0.155 and 0.33 for calls of different sizes; and 0.02 in the second half of "windup", where
// they allow 0.26. What is about seats that stay taken after the call, or about no queue, has no counterpart. Seats are
// given all at once at the begin and permits are not, so the time counts from when the first call's work is done.
func TestQueueset(t *testing.T) {
	const quarter = 91 * 24 * time.Hour
	second := time.Second
	scenarios := []struct {
		name     string
		capacity float64
		work     time.Duration
		lasts    time.Duration
		margins  []float64 // of each half, or of the whole
		flows    []flow
	}{
		{"baseline", 1, second, 20 * second, []float64{0}, []flow{{threads: 1, calls: 21}}},
		{"separations, 1 of 1", 1, second, 24 * second, []float64{0}, []flow{{threads: 1, calls: 25, think: second}}},
		{"separations, 1 of 2", 2, second, 24 * second, []float64{0}, []flow{{threads: 1, calls: 25, think: second}}},
		{"separations, 2 of 1", 1, second, 24 * second, []float64{0}, []flow{
			{threads: 1, calls: 25, think: second}, {threads: 1, calls: 25, think: second},
		}},
		{"separations, 2 of 2", 2, second, 24 * second, []float64{0}, []flow{
			{threads: 1, calls: 25, think: second}, {threads: 1, calls: 25, think: second},
		}},
		{"uniform flows, 50 s", 4, second, 50 * second, []float64{0.01}, []flow{
			{threads: 8, calls: 20, think: second - 1}, {threads: 8, calls: 20, think: second - 1},
		}},
		{"uniform flows, 60 s", 4, second, 60 * second, []float64{0.03}, []flow{
			{threads: 8, calls: 30, think: second - 1}, {threads: 8, calls: 30, think: second - 1},
		}},
		{"different flows, equal", 4, second, 40 * second, []float64{0.01}, []flow{
			{threads: 8, calls: 20, think: second}, {threads: 7, calls: 30, think: second / 2},
		}},
		{"calls of a quarter of a year", 2000, quarter, 40 * quarter, []float64{0.01}, []flow{
			{threads: 8, calls: 20, think: quarter, permits: 500}, {threads: 7, calls: 30, think: quarter / 2, permits: 500},
		}},
		{"different flows, unequal", 3, second, 20 * second, []float64{0.01}, []flow{
			{threads: 4, calls: 20, think: second - 1}, {threads: 2, calls: 20, think: second - 1},
		}},
		{"different sizes", 6, second, 20 * second, []float64{0.155}, []flow{
			{threads: 13, calls: 10, think: second - 1}, {threads: 7, calls: 10, think: second - 1, permits: 2},
		}},
		{"too large", 6, second, 225 * second, []float64{0.33}, []flow{
			{threads: 15, calls: 21, think: second - 1, permits: 2}, {threads: 15, calls: 21, think: second - 1, permits: 2},
			{threads: 15, calls: 21, think: second - 1, permits: 2}, {threads: 15, calls: 21, think: second - 1, permits: 2},
			{threads: 15, calls: 21, think: second - 1, permits: 7},
		}},
		{"windup", 3, second, 40 * second, []float64{0.01, 0.02}, []flow{
			{threads: 2, calls: 40, think: -1}, {threads: 2, calls: 40, think: -1, late: true},
		}},
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				q := reserve.Must(fair.New(evenly(s.capacity/s.work.Seconds()), []fair.Class{{}}, fair.WithTenants(nil)))
				halves := len(s.margins)
				part := s.lasts / time.Duration(halves)
				var mu sync.Mutex
				got := make([][]float64, halves) // by part of the time and by flow
				for h := range got {
					got[h] = make([]float64, len(s.flows))
				}
				var all sync.WaitGroup
				for i, f := range s.flows {
					n := max(1, f.permits)
					for j := range f.threads {
						all.Go(func() {
							calls := f.calls
							time.Sleep(time.Duration(90*j + 20*i))
							if f.late && j >= f.threads/2 {
								time.Sleep(s.work + s.lasts/2)
								calls /= 2
							}
							for range calls {
								_, err := q.Acquire(fair.With(ctx, "", strconv.Itoa(i)), n)
								require.NoError(t, err)
								went := since()
								mu.Lock()
								for h := range got { // so much of the work is done in this part
									begin := s.work + time.Duration(h)*part
									done := min(went+s.work, begin+part) - max(went, begin)
									got[h][i] += float64(n) * max(0, done).Seconds() / part.Seconds()
								}
								mu.Unlock()
								time.Sleep(s.work + f.think)
							}
						})
					}
				}
				all.Wait()
				for h := range got {
					demands := make([]float64, len(s.flows))
					for i, f := range s.flows {
						threads := f.threads
						if f.late && h == 0 {
							threads /= 2
						}
						demands[i] = f.demand(threads, s.work)
					}
					worst := 0.0
					for i, share := range maxMin(s.capacity, demands) {
						worst = max(worst, math.Abs(got[h][i]/share-1))
					}
					t.Logf("part %d: off by %.4f, may be %v: %.3f", h, worst, s.margins[h], got[h])
					require.LessOrEqual(t, worst, s.margins[h]+1e-6)
				}
			})
		})
	}
}
