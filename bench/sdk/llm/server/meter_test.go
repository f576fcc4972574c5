package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeterExact(t *testing.T) {
	m := newMeter(tokens, 100, 100, time.Minute, false)
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	first := m.take(at(0), 60)
	m.take(at(10), 30)
	require.Equal(t, 10, m.left(at(10)))
	require.Equal(t, 50*time.Second, m.wait(at(10), 11))
	require.Equal(t, 60*time.Second, m.wait(at(10), 71))
	require.Equal(t, time.Minute, m.untilFull(at(10)))
	m.correct(at(20), first, 90) // beyond the limit
	require.Equal(t, -20, m.left(at(20)))
	require.Equal(t, 100-30, m.left(at(60)))
	m.correct(at(60), first, 0) // too late to matter
	require.Equal(t, 100-30, m.left(at(60)))
	require.Zero(t, m.untilFull(at(70)))
}

func TestMeterBucket(t *testing.T) {
	m := newMeter(tokens, 60, 60, time.Minute, true)
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	first := m.take(at(100), 60)
	require.Equal(t, 10, m.left(at(110)))
	require.Equal(t, 5*time.Second, m.wait(at(110), 15))
	m.correct(at(110), first, 40)
	require.Equal(t, 30, m.left(at(110)))
	require.Equal(t, 30*time.Second, m.untilFull(at(110)))
	require.Equal(t, 60, m.left(at(1000)))
}

func TestNoMeter(t *testing.T) { require.Nil(t, newMeter(tokens, 0, 0, time.Minute, false)) }

// All limits are charged or none, and the one that takes longest is told.
func TestAdmit(t *testing.T) {
	a := newAccount(Quota{Requests: 12, RequestWindow: 10 * time.Second, InputTokens: 100, OutputTokens: 50})
	now := time.Unix(0, 0)
	c := &call{counted: 50, most: 30, reply: 20}
	require.Nil(t, a.admit(now, c))
	a.settle(now.Add(time.Second), c, 20)
	require.Equal(t, []int{1, 50, 30}, []int{a.meters[0].left(now), a.meters[1].left(now), a.meters[2].left(now)})

	why := a.admit(now, &call{counted: 50, most: 40})
	require.Equal(t, outputTokens, why.limit)
	require.Equal(t, time.Minute, why.wait)
	require.Equal(t, 1, a.meters[0].left(now))
	require.True(t, a.admit(now, &call{most: 51}).larger)
	require.Nil(t, a.admit(now, &call{counted: 50}))
	require.Equal(t, requests, a.admit(now, &call{}).limit)
	require.Nil(t, a.admit(now.Add(10*time.Second), &call{}))
}

func TestAdmitKeepsOrForesees(t *testing.T) {
	for _, tt := range []struct {
		how         Charging
		first, last int
	}{{Settled, 30, 5}, {Kept, 30, 30}, {Foreseen, 5, 5}} {
		a := newAccount(Quota{Tokens: 100, Charging: tt.how})
		c := &call{most: 30, reply: 5}
		now := time.Unix(0, 0)
		require.Nil(t, a.admit(now, c))
		require.Equal(t, 100-tt.first, a.meters[0].left(now))
		a.settle(now, c, 5)
		require.Equal(t, 100-tt.last, a.meters[0].left(now))
	}
}

func TestPrompt(t *testing.T) {
	o := Orders{Reply: 40, Chunks: 5, Takes: 1500 * time.Millisecond, Cached: 30, Breaks: 2}
	p := Prompt(100, o)
	require.Equal(t, 100, Tokens(p))
	require.Equal(t, o, read(p))
	require.Equal(t, Orders{Reply: 16, Chunks: 4}, read(Prompt(3, Orders{})))
	require.Equal(t, 3, Tokens(Prompt(3, Orders{})))
}
