package pacek8s_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/plug/pacek8s"
)

// Once in 2 s for each item: an item that came out late, or whose work took long, does not come again sooner.
func TestPermitsCountFromTheItemsWork(t *testing.T) {
	for name, ends := range map[string]func(q *pacek8s.QueueLimiter[string]){
		"again":     func(*pacek8s.QueueLimiter[string]) {},
		"forgotten": func(q *pacek8s.QueueLimiter[string]) { q.Forget("a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := reserve.Must(pace.Bursty(0.5, pace.WithBurst(0)))
				perItem := keyed.New(func(string) (*reserve.Policy, error) { return p, nil })
				q := reserve.Must(pacek8s.NewQueueLimiter(nil, perItem.For))
				require.Zero(t, q.When("a"))
				time.Sleep(1400 * time.Millisecond)
				ends(q)
				require.Equal(t, 2*time.Second, q.When("a"))
				require.Equal(t, 2*time.Second, q.When("a"), "an item keeps its permit")
			})
		})
	}
}

// With a longest wait, items beyond it go one after the other, too.
func TestNoItemGoesWithoutAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := reserve.Must(pace.NewBursty(100, pace.WithBurst(0), reserve.WithMaxWait(time.Second)))
		q := reserve.Must(pacek8s.NewQueueLimiter[int](by, nil))
		perSecond := map[int]int{}
		for i := range 1000 {
			perSecond[int(q.When(i).Seconds())]++
		}
		time.Sleep(2500 * time.Millisecond)
		for i := range 100 { // later ones go behind
			perSecond[int((q.When(1000+i)+2500*time.Millisecond).Seconds())]++
		}
		for second, n := range perSecond {
			require.LessOrEqual(t, n, 102, "in second %d", second)
		}
		require.Len(t, perSecond, 11)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1100, by.Snapshot().Granted)
	})
}
