package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// All by hand: a permit takes 10, and times are from the begin.
const each = 10.0

func bucket(capacity, stored float64, upfront bool) *Limiter {
	return New(Config{Rate: 1e9 / each, Capacity: Fixed(capacity), Stored: stored, Upfront: upfront, KeepsPermits: true})
}

// A step is something that happens, after which the waiting requests, first come first, will go at these times.
type step struct {
	do   string // reserve, try, settle, pass, pause until, resume, rate, retime, refused
	a, b int
	line []float64
}

type table struct {
	name   string
	l      *Limiter
	steps  []step
	level  float64 // at the end
	goes   []float64
	stored float64 // at the end; permits
}

func (c table) run(t *testing.T) {
	for i, s := range c.steps {
		at := fmt.Sprintf("step %d: %+v", i, s)
		switch s.do {
		case "reserve":
			_, _, ok := c.l.Reserve(s.a, math.Inf(1))
			require.True(t, ok, at)
		case "try":
			_, ok := c.l.TryAcquire(s.a)
			require.True(t, ok, at)
		case "refused": // within b
			_, _, ok := c.l.Reserve(s.a, float64(s.b))
			require.False(t, ok, at)
		case "settle":
			c.l.Settle(s.a, s.b)
		case "pass":
			c.l.Advance(float64(s.a))
		case "pause until":
			c.l.PauseUntil(float64(s.a))
		case "resume":
			c.l.Resume()
		case "rate":
			c.l.SetRate(1e9 / float64(s.a))
		case "retime":
			c.l.Retime(1e9 / float64(s.a))
		default:
			t.Fatal(at)
		}
		times := c.l.Times()
		var line []float64
		for _, id := range c.l.Waiting() {
			line = append(line, times[id])
		}
		require.Equal(t, s.line, line, at)
	}
	require.InDelta(t, c.level, c.l.level(), 1e-6)
	times := c.l.Times()
	for i, want := range c.goes {
		require.InDelta(t, want, times[i+1], 1e-6, "the %dth goes", i+1)
	}
}

type line = []float64

func TestPaidLater(t *testing.T) {
	for _, c := range []table{
		{name: "prepayment", l: bucket(0, 0, false), steps: []step{
			{"reserve", 8, 0, nil}, {"reserve", 1, 0, line{80}}, {"reserve", 2, 0, line{80, 90}}, {"pass", 85, 0, line{90}}, {"pass", 5, 0, nil},
		}, level: -20, goes: line{0, 80, 90}},
		{name: "saved up", l: bucket(5, 0, false), steps: []step{
			{"pass", 70, 0, nil}, {"try", 5, 0, nil}, {"try", 1, 0, nil}, {"refused", 1, 9, nil}, {"reserve", 1, 0, line{80}},
		}, level: -10, goes: line{70, 70, 80}},
		{name: "those behind one who leaves move up", l: bucket(0, 0, false), steps: []step{
			{"reserve", 1, 0, nil}, {"reserve", 3, 0, line{10}}, {"reserve", 1, 0, line{10, 40}}, {"reserve", 1, 0, line{10, 40, 50}},
			{"settle", 2, 0, line{10, 20}}, {"settle", 3, 0, line{10}}, {"pass", 10, 0, nil},
		}, level: -10, goes: line{0}},
		{name: "less keeps the place", l: bucket(0, 0, false), steps: []step{
			{"reserve", 1, 0, nil}, {"reserve", 3, 0, line{10}}, {"reserve", 1, 0, line{10, 40}},
			{"settle", 2, 1, line{10, 20}}, {"settle", 2, 0, line{10, 20}}, {"settle", 2, 9, line{10, 20}},
		}, level: -10, goes: line{0, 10, 20}},
		{name: "a granted request turns out to be smaller", l: bucket(10, 0, false), steps: []step{
			{"reserve", 50, 0, nil}, {"reserve", 5, 0, line{500}}, {"reserve", 1, 0, line{500, 550}}, {"pass", 30, 0, line{500, 550}},
			{"settle", 1, 2, line{70}},
		}, level: -40, goes: line{0, 30, 70}},
		{name: "more is charged behind everybody", l: bucket(0, 0, false), steps: []step{
			{"reserve", 1, 0, nil}, {"reserve", 1, 0, line{10}}, {"settle", 1, 5, line{10}}, {"reserve", 1, 0, line{10, 60}},
			{"pass", 10, 0, line{60}}, {"pass", 10, 0, line{60}}, // the charge has its turn behind the second
		}, level: -40, goes: line{0, 10, 60}},
		{name: "more of who waits", l: bucket(0, 0, false), steps: []step{
			{"reserve", 1, 0, nil}, {"reserve", 2, 0, line{10}}, {"reserve", 1, 0, line{10, 30}}, {"settle", 2, 4, line{10, 30}}, {"reserve", 1, 0, line{10, 30, 60}},
		}, level: -10, goes: line{0, 10, 30, 60}},
		{name: "late, and nothing had spilled", l: bucket(10, 10, false), steps: []step{
			{"reserve", 6, 0, nil}, {"try", 4, 0, nil}, {"pass", 40, 0, nil}, {"settle", 1, 0, nil},
		}, level: 100, goes: line{0, 0}},
		{name: "late, and two had spilled", l: bucket(10, 10, false), steps: []step{
			{"reserve", 6, 0, nil}, {"pass", 40, 0, nil}, {"try", 8, 0, nil}, {"settle", 1, 0, nil},
		}, level: 20, goes: line{0, 40}},
		{name: "late, and all had spilled", l: bucket(0, 0, false), steps: []step{
			{"reserve", 3, 0, nil}, {"pass", 30, 0, nil}, {"reserve", 2, 0, nil}, {"settle", 1, 0, nil},
		}, level: -20, goes: line{0, 30}},
		{name: "no request is called back", l: bucket(0, 0, false), steps: []step{
			{"reserve", 3, 0, nil}, {"reserve", 5, 0, line{30}}, {"pass", 10, 0, line{30}}, {"settle", 1, 1, nil}, {"settle", 1, 3, nil}, {"reserve", 1, 0, line{60}},
		}, level: -50, goes: line{0, 10, 60}},
		{name: "a pause", l: bucket(0, 0, false), steps: []step{
			{"reserve", 1, 0, nil}, {"reserve", 1, 0, line{10}}, {"pass", 4, 0, line{10}}, {"pause until", 24, 0, line{30}}, {"pause until", 20, 0, line{30}},
			{"reserve", 1, 0, line{30, 40}}, {"settle", 1, 0, line{24, 34}}, {"pass", 10, 0, line{24, 34}}, {"pass", 10, 0, line{34}},
		}, level: -10, goes: line{0, 24, 34}},
		{name: "what is due when it begins is granted", l: bucket(0, 0, false), steps: []step{
			{"reserve", 1, 0, nil}, {"reserve", 1, 0, line{10}}, {"pass", 10, 0, nil}, {"pause until", 30, 0, nil}, {"refused", 1, 29, nil}, {"reserve", 1, 0, line{40}},
		}, level: -10, goes: line{0, 10, 40}},
		{name: "resumed", l: bucket(2, 2, false), steps: []step{
			{"pause until", 1000, 0, nil}, {"reserve", 3, 0, line{1000}}, {"reserve", 1, 0, line{1000, 1010}}, {"pass", 5, 0, line{1000, 1010}}, {"resume", 0, 0, line{15}},
		}, level: -10, goes: line{5, 15}},
		{name: "a new rate, with debt", l: New(Config{Rate: 1e8, Capacity: Burst(1e-7)}), steps: []step{
			{"reserve", 2, 0, nil}, {"reserve", 1, 0, line{20}}, {"rate", 5, 0, line{20}}, {"reserve", 1, 0, line{20, 30}}, {"reserve", 1, 0, line{20, 30, 35}},
			{"settle", 2, 0, line{20, 25}},
		}, level: -20, goes: line{0}},
		{name: "a new rate, with debt, of a capacity in permits", l: bucket(10, 0, false), steps: []step{
			{"reserve", 2, 0, nil}, {"reserve", 1, 0, line{20}}, {"rate", 5, 0, line{10}}, {"reserve", 1, 0, line{10, 15}}, {"rate", 20, 0, line{40, 60}},
			{"settle", 1, 1, line{20, 40}},
		}, level: -20, goes: line{0}},
		{name: "a new rate, with something stored", l: bucket(10, 8, false), steps: []step{
			{"reserve", 4, 0, nil}, {"rate", 5, 0, nil}, {"settle", 1, 0, nil}, // 40 scale to 20, 80 to 40
		}, level: 40, goes: line{0}},
		{name: "stored permits stay when it is retimed", l: bucket(10, 6, false), steps: []step{
			{"retime", 5, 0, nil}, {"retime", 20, 0, nil}, {"reserve", 1, 0, nil},
		}, level: 100, goes: line{0}},
		{name: "retimed, it holds no more than it can", l: New(Config{Rate: 1e8, Capacity: Burst(1e-7), Stored: 10}), steps: []step{
			{"retime", 20, 0, nil}, {"rate", 10, 0, nil}, // 5 fit, and no rate makes them more again
		}, level: 50},
		{name: "a refund is for who waited at the change and goes first", l: bucket(2.5, 2.5, true), steps: []step{ // queue 18236
			{"reserve", 6, 0, line{35}}, {"reserve", 8, 0, line{35, 115}}, {"retime", 20, 0, line{70, 230}}, {"pass", 60, 0, line{70, 230}},
			{"rate", 10, 0, line{65, 145}}, {"settle", 1, 0, line{85}}, {"settle", 2, 2, nil},
		}, level: 5},
		{name: "retimed", l: bucket(0, 0, false), steps: []step{
			{"reserve", 4, 0, nil}, {"reserve", 2, 0, line{40}}, {"reserve", 1, 0, line{40, 60}}, {"pass", 20, 0, line{40, 60}},
			{"retime", 5, 0, line{30, 40}}, {"settle", 1, 3, line{25, 35}}, {"settle", 2, 1, line{25, 30}},
		}, level: -5, goes: line{0, 25, 30}},
	} {
		t.Run(c.name, c.run)
	}
}

func TestPaidUpfront(t *testing.T) {
	for _, c := range []table{
		{name: "its own cost", l: bucket(2, 2, true), steps: []step{
			{"reserve", 2, 0, nil}, {"reserve", 3, 0, line{30}}, {"reserve", 1, 0, line{30, 40}}, {"pass", 30, 0, line{40}},
		}, level: 0, goes: line{0, 30, 40}},
		{name: "TestCancel1Token", l: bucket(2, 2, true), steps: []step{
			{"reserve", 2, 0, nil}, {"reserve", 2, 0, line{20}}, {"reserve", 1, 0, line{20, 30}}, {"pass", 20, 0, line{30}}, {"settle", 2, 0, nil}, {"reserve", 2, 0, line{30}},
		}, level: 10, goes: line{0, 20, 20, 30}},
		{name: "TestCancelMulti", l: bucket(4, 4, true), steps: []step{
			{"reserve", 4, 0, nil}, {"reserve", 3, 0, line{30}}, {"reserve", 1, 0, line{30, 40}}, {"reserve", 1, 0, line{30, 40, 50}},
			{"pass", 10, 0, line{30, 40, 50}}, {"settle", 4, 0, line{30, 40}}, {"settle", 2, 0, nil}, {"reserve", 3, 0, line{40}},
		}, level: 0, goes: line{0}},
		{name: "larger than the store, gone", l: bucket(10, 10, true), steps: []step{
			{"reserve", 25, 0, line{150}}, {"pass", 150, 0, nil}, {"settle", 1, 4, nil},
		}, level: 60, goes: line{150}},
		{name: "larger than the store, and it leaves", l: bucket(2, 2, true), steps: []step{
			{"reserve", 5, 0, line{30}}, {"reserve", 4, 0, line{30, 70}}, {"pass", 15, 0, line{30, 70}}, {"settle", 1, 0, line{20}}, // it had been the head from the begin
			{"pass", 5, 0, nil}, {"pass", 100, 0, nil},
		}, level: 20},
		{name: "larger than the store, and none behind it", l: bucket(2, 2, true), steps: []step{
			{"reserve", 5, 0, line{30}}, {"pass", 15, 0, line{30}}, {"settle", 1, 0, nil},
		}, level: 20},
		{name: "one asks later, and gets what is there", l: bucket(2, 2, true), steps: []step{
			{"reserve", 5, 0, line{30}}, {"pass", 15, 0, line{30}}, {"reserve", 4, 0, line{30, 70}}, {"settle", 1, 0, line{20}},
		}, level: 35, goes: nil},
		{name: "it gets no more than it needs", l: bucket(2, 2, true), steps: []step{
			{"reserve", 9, 0, line{70}}, {"pass", 60, 0, line{70}}, {"reserve", 4, 0, line{70, 110}}, {"settle", 1, 0, nil},
		}, level: 0, goes: nil},
		{name: "it has a larger bucket only while it waits", l: bucket(2, 2, true), steps: []step{
			{"pass", 100, 0, nil}, {"reserve", 4, 0, line{120}}, {"settle", 1, 0, nil}, {"reserve", 4, 0, line{120}},
		}, level: 20, goes: nil},
		{name: "less, and it may go at once", l: bucket(2, 0, true), steps: []step{
			{"reserve", 4, 0, line{40}}, {"reserve", 1, 0, line{40, 50}}, {"pass", 15, 0, line{40, 50}}, {"settle", 1, 1, line{20}},
		}, level: 5, goes: line{15, 20}},
		{name: "a charge needs nothing", l: bucket(2, 2, true), steps: []step{
			{"reserve", 1, 0, nil}, {"settle", 1, 4, nil}, {"reserve", 1, 0, line{30}}, // 10 are there, 30 are charged
		}, level: -20, goes: line{0, 30}},
	} {
		t.Run(c.name, c.run)
	}
}

func TestWarmingUp(t *testing.T) {
	warm := func(stored float64, upfront bool) *Limiter { // the cold one's next permits cost 28 and 24 and 20 ...
		return New(Config{Rate: 1e9 / each, Warm: &WarmUp{Period: 100, ColdFactor: 3}, Stored: stored, Upfront: upfront})
	}
	t.Run("the price list", func(t *testing.T) {
		c := (&WarmUp{Period: 100, ColdFactor: 3}).curve(1e9 / each)
		require.Equal(t, 10.0, c.capacity)
		require.Equal(t, 5.0, c.bend)
		for _, p := range []struct {
			permits      int
			stored, cost float64
		}{{1, 10, 28}, {2, 10, 52}, {5, 10, 100}, {6, 10, 110}, {12, 10, 170}, {1, 5, 10}, {1, 5.5, 10.5}, {3, 0, 30}} {
			require.InDelta(t, p.cost, c.cost(p.permits, p.stored), 1e-9, "%+v", p)
		}
	})
	for _, c := range []table{
		{name: "slots keep their lengths", l: warm(10, false), steps: []step{
			{"reserve", 2, 0, nil}, {"reserve", 1, 0, line{52}}, {"reserve", 1, 0, line{52, 72}}, {"settle", 2, 0, line{52}},
		}, level: -52, stored: 7, goes: line{0}},
		{name: "less keeps the dearest", l: warm(10, false), steps: []step{
			{"reserve", 2, 0, nil}, {"reserve", 1, 0, line{52}}, {"settle", 1, 1, line{28}},
		}, level: -28, stored: 8, goes: line{0, 28}},
		{name: "time that has passed is gone", l: warm(5, false), steps: []step{
			{"reserve", 4, 0, nil}, {"pass", 20, 0, nil}, {"settle", 1, 0, nil},
		}, level: 0, stored: 5, goes: line{0}},
		{name: "for an older one, too", l: warm(5, false), steps: []step{
			{"reserve", 4, 0, nil}, {"reserve", 1, 0, line{40}}, {"pass", 20, 0, line{40}}, {"settle", 1, 0, nil},
		}, level: -10, stored: 4, goes: line{0, 20}},
		{name: "and for one that is over", l: warm(5, false), steps: []step{
			{"reserve", 4, 0, nil}, {"pass", 60, 0, nil}, {"settle", 1, 0, nil}, // 1, and 2 for the idle 20, and 4
		}, level: 0, stored: 7, goes: line{0}},
		{name: "upfront", l: warm(10, true), steps: []step{
			{"reserve", 2, 0, line{24}}, {"reserve", 1, 0, line{24, 44}}, {"pass", 10, 0, line{24, 44}}, {"settle", 1, 0, nil},
		}, level: -20, stored: 9, goes: line{0, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(t)
			require.InDelta(t, c.stored, c.l.Stored(), 1e-6)
		})
	}
}

func TestCloneIsApart(t *testing.T) {
	l := bucket(0, 0, false)
	l.Reserve(1, math.Inf(1))
	l.Reserve(1, math.Inf(1))
	c := l.Clone()
	c.Settle(2, 0)
	c.Advance(100)
	require.Equal(t, []int{2}, l.Waiting())
	require.Zero(t, l.real)
	require.Equal(t, 20.0, l.NextFree())
}
