package shared_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// Callers of two processes keep a limiter of 1000/s saturated: each reserves 1000, settles at 300
// to 500 when it has held that for so long, and begins again. Permits that they give back are used
// by the others, as far as promised times that can't move leave room: the wanted numbers are those
// of a simulation of the rule.
func TestSettlers(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		t.Log("| saved up | callers | each takes | used of 1000/s | wanted |")
		for i, row := range []struct {
			saved   time.Duration
			callers int
			takes   time.Duration
			want    float64
		}{
			{0, 16, 200 * time.Millisecond, 401},
			{time.Second, 64, 2 * time.Second, 564},
			{time.Second, 64, 8 * time.Second, 453},
			{time.Minute, 16, 2 * time.Second, 994},
			{time.Minute, 64, 8 * time.Second, 997},
		} {
			if c.brief() && i != 1 {
				continue
			}
			used := settlers(t, c, row.saved, row.callers, row.takes)
			t.Logf("| %v | %d | %v | %.0f | %v |", row.saved, row.callers, row.takes, used, row.want)
			require.GreaterOrEqual(t, used, 0.95*row.want, row)
			require.LessOrEqual(t, used, 1001.0, row)
		}
	})
}

func settlers(t *testing.T, c place, saved time.Duration, callers int, takes time.Duration) (usedPerSecond float64) {
	const warmUp, length = 300e6, 2000e6 // microseconds
	random := rand.New(rand.NewPCG(1, uint64(callers)))
	begin := int64(1_790_000_000_000_000)
	micros := begin
	var processes [2]*shared.Limiter
	for i := range processes {
		name := fmt.Sprint("settlers ", saved, callers, takes)
		processes[i] = newShared(t, c, name, reserve.Must(pace.Bursty(1000, pace.WithBurst(saved))), shared.FakeTime(&micros))
	}
	var next events
	var start func(i int)
	start = func(i int) {
		sale, err := processes[i%2].Sell(1000, math.MaxInt64)
		require.NoError(t, err)
		done := micros + (sale.Wait+999)/1000 + takes.Microseconds()
		next.add(done, func() {
			actual := 300 + random.IntN(201)
			sale.Promise().Settle(actual)
			if done >= begin+warmUp {
				usedPerSecond += float64(actual) / (length / 1e6)
			}
			start(i)
		})
	}
	for i := range callers {
		next.add(begin+int64(i), func() { start(i) })
	}
	for micros < begin+warmUp+length {
		e := heap.Pop(&next).(event)
		micros = e.at
		e.do()
	}
	return usedPerSecond
}

// Events are what happens in simulated time.
type (
	event struct {
		at int64
		do func()
	}
	events []event
)

func (q *events) add(at int64, do func()) { heap.Push(q, event{at, do}) }
func (q *events) Push(e any)              { *q = append(*q, e.(event)) }
func (q events) Len() int                 { return len(q) }
func (q events) Less(i, j int) bool       { return q[i].at < q[j].at }
func (q events) Swap(i, j int)            { q[i], q[j] = q[j], q[i] }
func (q *events) Pop() (last any) {
	*q, last = (*q)[:len(*q)-1], (*q)[len(*q)-1]
	return last
}
