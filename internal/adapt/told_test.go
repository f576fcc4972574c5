package adapt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A toldServer is a token bucket that a limit of 50 in a second is told for. Answers take 60 ms.
type toldServer struct {
	t           *Told
	now         time.Time
	size, level float64
	at          time.Time
	stop        time.Duration // of a refusal
	refused     int
}

const answerTime = 60 * time.Millisecond

func newToldServer(size float64) *toldServer {
	begin := time.Unix(0, 0)
	return &toldServer{t: NewTold(50, 50, false), now: begin, at: begin, size: size, level: size}
}

// burst sends calls at once, gets the answers, and returns how many were accepted.
func (s *toldServer) burst(calls int) (accepted int) {
	s.level = min(s.size, s.level+50*s.now.Sub(s.at).Seconds())
	s.at = s.now
	inUse := make([]float64, calls)
	for i := range inUse {
		inUse[i] = s.t.Sent(s.now, 1)
	}
	heard := s.now.Add(answerTime)
	for i := range inUse {
		if s.level >= 1 {
			s.level--
			accepted++
			s.t.Accepted(heard, s.now, 1)
		} else {
			s.refused++
			s.t.Refused(heard, s.now, s.stop, 1, inUse[i], false)
		}
	}
	return accepted
}

// pause passes without calls.
func (s *toldServer) pause(d time.Duration) { s.now = s.now.Add(d) }

// evenly sends calls at a part of the rate.
func (s *toldServer) evenly(calls int, part float64) {
	for range calls {
		s.burst(1)
		s.pause(time.Duration(float64(time.Second) / (50 * part)))
	}
}

func (s *toldServer) atOnce() int {
	_, saved, _ := s.t.Pace()
	return int(saved) + 1
}

// What was accepted of a burst, less a call, goes at once from then on. Every trial that is used and accepted adds twice
// as much.
func TestToldGivesItsBurstUp(t *testing.T) {
	s := newToldServer(10)
	_, _, less := s.t.Pace()
	require.False(t, less, "as told")
	require.Equal(t, 10, s.burst(32))
	rate, saved, less := s.t.Pace()
	require.True(t, less)
	require.InDelta(t, 50*.96, rate, .1)
	require.Equal(t, 8., saved, "9 at once")
	require.Zero(t, s.t.gap)
	s.size = 50
	took := s.now
	for s.atOnce() < 50 && s.now.Sub(took) < time.Hour {
		s.pause(time.Second)
		s.burst(s.atOnce())
	}
	require.Less(t, s.now.Sub(took), time.Minute, "a neighbour has come once")
	require.Equal(t, 22, s.refused)
	s.evenly(1500, 1)
	_, _, less = s.t.Pace()
	require.False(t, less, "as told again")
}

// A trial that is refused is undone. The next one comes after four times the time: ten minutes at last.
func TestToldTrials(t *testing.T) {
	s := newToldServer(10)
	s.burst(32)
	var trials []time.Duration
	begin := s.now
	for s.now.Sub(begin) < 40*time.Minute {
		s.pause(time.Second)
		before := s.refused
		if s.burst(s.atOnce()); s.refused > before {
			trials = append(trials, s.now.Sub(begin))
		}
	}
	require.LessOrEqual(t, len(trials), 8, "%v", trials)
	require.Greater(t, s.atOnce(), 7)
	require.LessOrEqual(t, s.atOnce(), 11)
}

// A server that counts in windows refuses the burst that it accepted before. Each such refusal halves it.
func TestToldHalvesItsBurst(t *testing.T) {
	s := newToldServer(40)
	s.burst(50)
	require.Equal(t, 39, s.atOnce())
	s.size = 20
	s.pause(time.Minute)
	require.Equal(t, 20, s.burst(39))
	require.Equal(t, 19, s.atOnce())
}

// A long stop in a window says that the server counts in windows, once in ten of them. A short one does not, nor one of a
// call that was within a window.
func TestToldWindowKeepsItsBurst(t *testing.T) {
	for _, c := range []struct {
		window bool
		stop   time.Duration
		want   int
	}{{false, time.Second, 9}, {false, 40 * time.Second, 50}, {true, 40 * time.Second, 9}} {
		stop, want := c.stop, c.want
		s := newToldServer(10)
		s.t = NewTold(50./60, 50, c.window)
		s.stop = stop
		s.burst(50)
		require.Equal(t, want, s.atOnce(), stop)
		s.pause(5 * time.Minute)
		s.burst(50)
		require.Less(t, s.atOnce(), 12, "again: %v", stop)
	}
}

// Spaced calls that are refused all the same arrive less evenly than they were sent. If more space does not help, it was
// something else.
func TestToldAllowsForJitter(t *testing.T) {
	for helps, want := range map[bool]bool{true: true, false: false} {
		told, now := NewTold(50, 1, false), time.Unix(0, 0)
		accept := func(calls int) {
			for i := range calls {
				now = now.Add(20 * time.Millisecond)
				told.Sent(now, 1)
				told.Accepted(now.Add(time.Duration(40+40*(i%2))*time.Millisecond), now, 1)
			}
		}
		refuse := func() {
			now = now.Add(100 * time.Millisecond)
			told.Refused(now.Add(60*time.Millisecond), now, 0, 1, told.Sent(now, 1), false)
			now = now.Add(100 * time.Millisecond)
		}
		accept(20)
		for range 3 { // the law takes what it may
			refuse()
			accept(4)
		}
		require.Greater(t, told.gap, .01)
		for range 4 {
			if helps {
				accept(100)
			}
			refuse()
			accept(4)
		}
		require.Equal(t, want, told.gap > 0, helps)
	}
}

// What comes busy, without a time, says nothing of how many may go at once, or how evenly.
func TestToldBusy(t *testing.T) {
	told, now := NewTold(50, 50, false), time.Unix(0, 0)
	for range 40 {
		now = now.Add(time.Second)
		for range 10 {
			told.Accepted(now.Add(time.Duration(told.Sent(now, 1))*time.Millisecond), now, 1)
		}
		told.Refused(now.Add(answerTime), now, 0, 1, told.Sent(now, 1), true)
	}
	require.True(t, told.Keeps())
	require.Zero(t, told.gap)
}

// While nothing is accepted after a refusal without a time, what was accepted leaves first.
func TestToldOwes(t *testing.T) {
	told, now := NewTold(100./60, 100, false), time.Unix(0, 0)
	for range 100 {
		told.Sent(now, 1)
		told.Accepted(now, now, 1)
	}
	for range 2 {
		now = now.Add(time.Second)
		hold := told.Refused(now, now, 0, 1, told.Sent(now, 1), false)
		if told.since == 0 && hold > 0 {
			require.InDelta(t, 58, hold.Seconds(), 1)
			return
		}
	}
	require.Fail(t, "no hold")
}
