package calendar

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/smooth"
)

// A server opens a period of a second with the first call that arrives, and says nothing of it. Calls overtake each
// other there and back.
type counting struct {
	longest         time.Duration // to the server, at most; and as long back
	cancelled       int           // 1 of so many steps a call gives up that has not arrived
	calls           []sent
	arrived         []int64
	periods, filled int
}

type sent struct {
	slot          smooth.Slot
	arrives, ends int64
}

// play has a client want more than the quota for 30 s, at first without a pause.
func (s *counting) play(t *testing.T, random *rand.Rand, quota, round int) {
	const step, end = int64(2 * time.Millisecond), int64(30 * time.Second)
	l, _ := newTest(int64(quota), FromFirst(time.Second), 10)
	s.calls, s.arrived = nil, nil
	for now := int64(0); now < end; now += step {
		s.calls = slices.DeleteFunc(s.calls, func(c sent) bool {
			switch {
			case c.ends <= now:
				l.End(now, c.slot)
				s.arrived = append(s.arrived, c.arrives)
				return true
			case now < c.arrives && s.cancelled > 0 && random.IntN(s.cancelled) == 0:
				l.Return(now, c.slot, 0)
				return true
			}
			return false
		})
		if random.IntN(1+15*(round%4)) > 0 {
			continue
		}
		if slot, _, ok := l.Reserve(now, 1, now); ok {
			arrives := now + random.Int64N(int64(s.longest))
			s.calls = append(s.calls, sent{l.Begin(now, slot), arrives, arrives + random.Int64N(int64(s.longest))})
		}
	}
	for _, c := range s.calls {
		s.arrived = append(s.arrived, c.arrives)
	}
	slices.Sort(s.arrived)
	for left := s.arrived; len(left) > 0; s.periods++ {
		n, _ := slices.BinarySearch(left, left[0]+int64(time.Second))
		require.LessOrEqual(t, n, quota, "in round %d", round)
		if left = left[n:]; n == quota {
			s.filled++
		}
	}
}

func TestNoPeriodOfTheServerIsExceeded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 8))
	short := counting{longest: 150 * time.Millisecond}
	for round := range 40 {
		short.play(t, random, 10, round)
	}
	t.Logf("%d of %d periods are full", short.filled, short.periods)
	require.Greater(t, short.filled, short.periods/2)

	// Calls may take longer than a period, and the one that opened it may give up.
	for round := range 200 {
		s := counting{longest: time.Duration(1+round%7) * 250 * time.Millisecond, cancelled: 100 * (round % 3)}
		s.play(t, random, 2+round%5, round)
	}
}
