package line_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/line"
	"github.com/nextfree/pace/internal/smooth"
)

type state struct{ at, next int64 }

func (s state) When() int64 { return s.at }

// A gap grants a permit each per; a permit that comes back is worth nothing.
type gap struct {
	line.Line[state]
	per     int64
	present state
	granted []uint64
}

func newGap(per int64) *gap {
	g := &gap{per: per}
	g.Line = line.Of[state](g)
	return g
}

func (g *gap) Advance(now int64) {
	g.Now = now
	g.Due(now)
}

func (g *gap) Present() state { return g.present }

func (g *gap) After(prev state, permits, latest int64) state {
	at := max(g.Now, prev.at, min(prev.next, latest))
	return state{at, at + permits*g.per}
}

func (g *gap) Grant(number uint64, _ int64, after state) {
	g.present = after
	g.granted = append(g.granted, number)
}

func (g *gap) Refund(smooth.Slot, int)   {}
func (g *gap) Left() int64               { return 1 }
func (g *gap) Paused() int64             { return 0 }
func (g *gap) Size() (float64, int)      { return 1, 100 }
func (g *gap) ready(s smooth.Slot) int64 { at, _ := g.Ready(g.Now, s.Number); return at }
func (g *gap) reserve(n int) smooth.Slot { s, _, _ := g.Reserve(g.Now, n, line.Never); return s }
func (g *gap) readies(of ...smooth.Slot) (at []int64) {
	for _, s := range of {
		at = append(at, g.ready(s))
	}
	return at
}

// Requests that give up, or need less, let those behind them move up.
func TestLine(t *testing.T) {
	g := newGap(10)
	require.True(t, g.Take(0, 1))
	require.False(t, g.Take(0, 1))
	a, b, c := g.reserve(1), g.reserve(3), g.reserve(1)
	require.Equal(t, []int64{10, 20, 50}, g.readies(a, b, c))
	require.Equal(t, int64(60), g.NextFree(0))
	require.Equal(t, int64(90), g.Behind(0, slices.Values([]int{1, 2}), 1))
	require.Equal(t, int64(60), g.NextFree(0), "to be asked ahead changes nothing")
	_, ready, ok := g.Reserve(0, 1, 59)
	require.False(t, ok)
	require.Equal(t, int64(60), ready)

	g.Return(0, b, 1)
	require.Equal(t, []int64{10, 20, 30}, g.readies(a, b, c))
	g.Return(0, a, 0)
	require.Equal(t, []int64{10, 20}, g.readies(b, c))
	require.Equal(t, int64(2), g.Permits(false))
	g.Advance(15)
	require.False(t, g.Waits(15, b.Number))
	require.True(t, g.Waits(15, c.Number))
	require.Equal(t, []uint64{1, b.Number}, g.granted)
	g.Advance(20)
	require.True(t, g.Idle(20))
}

// A charge waits for the requests before it, and for no permit.
func TestCharge(t *testing.T) {
	g := newGap(10)
	g.Charge(0, 1)
	a := g.reserve(1)
	g.Charge(0, 2)
	require.Equal(t, int64(2), g.Permits(true))
	require.Equal(t, int64(30), g.NextFree(0))
	g.Return(0, a, 0)
	require.Zero(t, g.Len(), "it is the first")
}

// After a change a request goes no later than was promised, until that is released.
func TestKeep(t *testing.T) {
	g := newGap(10)
	g.Take(0, 1)
	a, b := g.reserve(1), g.reserve(1)
	g.Keep()
	g.per = 100
	require.Equal(t, []int64{10, 20}, g.readies(a, b))
	require.Equal(t, int64(120), g.NextFree(0))
	g.Release()
	require.Equal(t, []int64{10, 110}, g.readies(a, b))
}

func TestQueue(t *testing.T) {
	var q line.Queue[int]
	for i := range 5000 {
		q.Push(i)
		if i%2 == 1 {
			q.Drop(1)
		}
	}
	require.Equal(t, 2500, q.Len())
	require.Equal(t, 2500, q.All()[0])
	q.Cut(100)
	q.Delete(func(i int) bool { return i%2 == 0 })
	require.Equal(t, 50, q.Len())
	require.Equal(t, 2501, q.All()[0])
	q.Drop(50)
	require.Zero(t, q.Len())
}
