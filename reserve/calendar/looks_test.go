package calendar_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
)

// What a quota says does not depend on whether somebody has looked meanwhile. Before, requests that moved up by a
// refund got their times when somebody looked, and took what was left then.
func TestLooksChangeNothing(t *testing.T) {
	for seed := range uint64(300) {
		var said [2][]any
		for i, looks := range []bool{false, true} {
			random := rand.New(rand.NewPCG(seed, 9))
			clock := clockwork.NewFakeClockAt(time.Unix(1e9, 0))
			l := reserve.Must(calendar.New(3, calendar.Every(time.Second), reserve.WithClock(clock)))
			var made []*reserve.Reservation
			for range 8 {
				left := time.Duration(random.IntN(700)) * time.Millisecond
				if random.IntN(5) == 0 {
					left += 5 * time.Second
				}
				if looks {
					for ; left > 100*time.Millisecond; left -= 100 * time.Millisecond {
						clock.Advance(100 * time.Millisecond)
						l.Stored()
					}
				}
				clock.Advance(left)
				switch n := 1 + random.IntN(4); random.IntN(4) {
				case 0:
					l.TryAcquire(n)
				case 1:
					if len(made) > 0 {
						made[random.IntN(len(made))].Settle(random.IntN(5))
					}
				default:
					r, err := l.Reserve(context.Background(), n)
					require.NoError(t, err)
					made = append(made, &r)
				}
			}
			if looks {
				clock.Advance(time.Second)
				l.Stored()
				clock.Advance(5 * time.Second)
			} else {
				clock.Advance(6 * time.Second)
			}
			for range 5 {
				said[i] = append(said[i], l.Stored())
				clock.Advance(time.Second)
			}
		}
		require.Equal(t, said[0], said[1], "seed %d", seed)
	}
}
