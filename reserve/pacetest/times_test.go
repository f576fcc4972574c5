package pacetest_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve/pacetest"
)

func at(seconds ...float64) (times []time.Time) {
	for _, s := range seconds {
		times = append(times, day.Add(time.Duration(s*float64(time.Second))))
	}
	return times
}

// A stretch has its beginning and not its end; times may be in any order.
func TestMostIn(t *testing.T) {
	for _, c := range []struct {
		times []time.Time
		most  int
		first float64
	}{
		{nil, 0, 0},
		{at(5), 1, 5},
		{at(0, 1, 2), 1, 0},
		{at(0, 0.5, 0.999, 1), 3, 0},
		{at(0, 0.5, 1, 1.2, 1.4), 4, 0.5},
		{at(3, 1, 2, 2.5), 2, 2},
		{at(7, 7, 7), 3, 7},
	} {
		most, first := pacetest.MostIn(time.Second, c.times)
		require.Equal(t, c.most, most)
		if c.most > 0 {
			require.Equal(t, at(c.first)[0], first)
		}
	}
}

// Of random times, it is what counting each stretch finds.
func TestMostInIsTheMost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var seconds []float64
		for range random.IntN(40) {
			seconds = append(seconds, float64(random.IntN(30))/10)
		}
		times := at(seconds...)
		want := 0
		for _, from := range times {
			n := 0
			for _, t := range times {
				if d := t.Sub(from); d >= 0 && d < time.Second {
					n++
				}
			}
			want = max(want, n)
		}
		most, _ := pacetest.MostIn(time.Second, times)
		require.Equal(t, want, most)
	}
}

// The failure says where.
func TestNeverMoreThan(t *testing.T) {
	var f failures
	pacetest.NeverMoreThan(&f, 2, time.Second, at(0, 1, 1.5, 2))
	require.Empty(t, f)
	pacetest.NeverMoreThan(&f, 2, time.Second, at(0, 1, 1.5, 1.9, 3))
	require.Equal(t, failures{"pacetest: 3 times in the 1s from 2026-11-21T12:00:01Z, 1s after the first of 5; " +
		"want 2 at most"}, f)
}

// Times may be noted by many at once.
func TestTimes(t *testing.T) {
	watchdog.Start(t)
	var times pacetest.Times
	var all sync.WaitGroup
	for range 100 {
		all.Go(times.Note)
	}
	all.Wait()
	require.Len(t, times.All(), 100)
	pacetest.NeverMoreThan(t, 100, time.Hour, times.All())
}

// An assertion that can't fail is one that fails.
func TestNeverMoreThanSaysSomething(t *testing.T) {
	for _, c := range []struct {
		n      int
		d      time.Duration
		times  []time.Time
		passes bool
	}{
		{1, time.Second, at(0), true},
		{0, time.Second, nil, true}, // none are wanted
		{1, time.Second, nil, false},
		{1, 0, at(0), false},
		{1, -time.Second, at(0, 0, 0), false},
		{-1, time.Second, nil, false},
	} {
		var failed failures
		pacetest.NeverMoreThan(&failed, c.n, c.d, c.times)
		require.Equal(t, c.passes, len(failed) == 0, "%+v: %v", c, failed)
	}
}
