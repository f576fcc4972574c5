package wake

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func TestCancelledWaitsLeaveNoDescriptor(t *testing.T) {
	cancelWaits(1000)
	before := descriptors(t)
	cancelWaits(10_000)
	require.LessOrEqual(t, descriptors(t), before)
	kicks.mu.Lock()
	defer kicks.mu.Unlock()
	require.Empty(t, kicks.due, "a sleep that ends takes its moment along")
}

// late returns by how much the best of many short sleeps was late.
func late(tries int, enough time.Duration, sleep func(time.Duration)) time.Duration {
	const d = 300 * time.Microsecond
	best := time.Hour
	for range tries {
		begin := time.Now()
		sleep(d)
		if best = min(best, time.Since(begin)-d); best <= enough {
			break
		}
	}
	return best
}

// What this package rests on: epoll_wait ends with the descriptor's time, and then the scheduler runs timers that
// are due. Where it does not, no sleep of 300 us ends before 1 ms, however often it is tried. On a
// loaded machine single sleeps are late, but not each of thousands.
func TestKickEndsThePollersWait(t *testing.T) {
	const enough = 200 * time.Microsecond
	plain := late(50, 0, func(d time.Duration) { <-time.After(d) })
	kicked := late(5000, enough, func(d time.Duration) { sleep(context.Background(), d) })
	t.Logf("at best %v late, a plain timer %v", kicked, plain)
	require.LessOrEqual(t, kicked, enough, "the scheduler does not look at its timers after epoll_wait; a plain timer is %v late", plain)
}

// A moment that nobody takes along, of a sleeper that was set when its sleep had ended, passes.
func TestForgottenKickPasses(t *testing.T) {
	var k kicker
	defer func() { require.NoError(t, k.file.Close()) }()
	var forgotten, next kick
	k.set(&forgotten, sinceStart()+100*time.Microsecond)
	for armed := k.armed; sinceStart() <= armed; {
	}
	k.set(&next, sinceStart()+time.Hour)
	require.Equal(t, []time.Duration{next.at}, k.due)
	require.Equal(t, next.at, k.armed)
}

// The list of moments, beside a plain sorted one.
func TestKicksAreInOrder(t *testing.T) {
	var k kicker
	defer func() { require.NoError(t, k.file.Close()) }()
	all := make([]kick, maxKicks+10)
	begin := sinceStart() + time.Hour
	for i := range all {
		k.set(&all[i], begin+time.Duration(i*7919%len(all)))
	}
	require.Len(t, k.due, maxKicks)
	require.True(t, slices.IsSortedFunc(k.due, func(a, b time.Duration) int { return int(b - a) }))
	require.Equal(t, begin, k.armed, "the next one")
	require.Equal(t, begin+maxKicks-1, k.due[0], "the latest ones are dropped")
	for i := range all {
		if all[i].at == begin {
			k.clear(&all[i])
		}
	}
	require.Equal(t, begin+1, k.armed, "that is over, or was cancelled, is followed by the next")
	k.set(&all[1], begin-time.Minute)
	require.Equal(t, begin-time.Minute, k.armed)
	k.set(&all[1], begin+time.Minute)
	require.Equal(t, begin+1, k.armed, "moved")
	for i := range all {
		k.clear(&all[i])
	}
	require.Empty(t, k.due)
}

// Without a descriptor timers are late, and nothing else.
func TestWithoutADescriptor(t *testing.T) {
	k := kicker{retry: sinceStart() + time.Hour}
	var one kick
	k.set(&one, sinceStart()+time.Hour)
	k.clear(&one)
	require.Nil(t, k.file)
	require.Zero(t, one)
}
