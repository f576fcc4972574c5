package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var usual = limits{1000, 100, 50 * time.Millisecond}

var start = time.Unix(1_790_000_000, 0)

// granted returns calls that were granted at these milliseconds, and took one each.
func granted(at ...int) (calls []call) {
	for _, ms := range at {
		begin := start.Add(time.Duration(ms) * time.Millisecond)
		calls = append(calls, call{begin: begin, from: begin, end: begin.Add(time.Millisecond), granted: true})
	}
	return calls
}

func TestOver(t *testing.T) {
	require.Zero(t, usual.over(nil))
	var all []int
	for range 100 { // a full store
		all = append(all, 0)
	}
	for ms := range 500 { // and the rate, of one a millisecond
		all = append(all, ms)
	}
	require.Zero(t, usual.over(granted(all...)))
	for range 7 {
		all = append(all, 250)
	}
	require.Equal(t, 6, usual.over(granted(all...)), "but for the last one's own")
	atAnyTime := call{begin: start, from: start, end: start.Add(time.Hour), granted: true}
	require.Zero(t, usual.over(append(granted(all[:600]...), atAnyTime)), "a call that may have been granted at any time")
}

func TestBack(t *testing.T) {
	var all []int
	for ms := 200; ms < 1000; ms++ {
		all = append(all, ms)
	}
	g := &group{limits: usual, calls: granted(all...)}
	require.InDelta(t, 170, g.back(start).Sub(start).Milliseconds(), 10, "nine tenths of the rate for 300 ms")
	g.calls = append(g.calls, call{end: start.Add(400 * time.Millisecond), failed: true})
	require.Equal(t, int64(400), g.back(start).Sub(start).Milliseconds(), "a call that failed")
	g.calls = g.calls[:200]
	require.Equal(t, time.Hour, g.back(start).Sub(start), "never")
}

func TestMisses(t *testing.T) {
	good := row{timeout: 50 * time.Millisecond, beyond: 49 * time.Millisecond, over: 100, may: 100, back: time.Second}
	require.Empty(t, good.misses(1))
	for _, spoil := range []func(r *row){
		func(r *row) { r.beyond = 51 * time.Millisecond },
		func(r *row) { r.over++ },
		func(r *row) { r.back++ },
		func(r *row) { r.hung++ },
		func(r *row) { r.goroutines++ },
		func(r *row) { r.odd = []error{errors.New("odd")} },
	} {
		r := good
		spoil(&r)
		require.NotEmpty(t, r.misses(1))
	}
	slow := row{timeout: 50 * time.Millisecond, beyond: 200 * time.Millisecond, back: 4 * time.Second}
	require.NotEmpty(t, slow.misses(1))
	require.Empty(t, slow.misses(wide))
}
