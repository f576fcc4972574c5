package conform

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

// A window and a quota decide the same alone and in a store, whatever is cancelled and settled, but for this: in a store
// promised times don't move, so what comes back while a request waits is for requests that go at once and delay no
// promise. Alone they wait in order. (And when a call that opened a period of FromFirst is cancelled after that, a store
// knows that the period began later, which a limiter alone has forgotten. So nothing is settled here after a minute.)
func TestAloneAndInAStore(t *testing.T) {
	for name, p := range map[string]*reserve.Policy{
		"window": reserve.Must(window.Policy(10, time.Minute)),
		"margin": reserve.Must(window.Policy(10, time.Minute, window.WithMargin(time.Second))),
		"day":    reserve.Must(calendar.Policy(10, calendar.Daily(time.UTC, 0))),
		"minute": reserve.Must(calendar.Policy(10, calendar.Every(time.Minute))),
		"first":  reserve.Must(calendar.Policy(10, calendar.FromFirst(time.Minute))),
		"spread": reserve.Must(calendar.Policy(10, calendar.Every(time.Minute), calendar.Spread(2))),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range rounds(300) {
				synctest.Test(t, func(t *testing.T) { aloneAndStored(t, p, uint64(seed)) })
			}
		})
	}
}

func aloneAndStored(t *testing.T, p *reserve.Policy, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	both := [2]reserve.Reserver{p.Limiter(), reserve.Must(shared.NewIn(shared.Memory(), "a", p))}
	var held [][2]*reserve.Reservation
	var since []time.Time
	log := fmt.Sprint("seed ", seed, ":")
	for range 40 {
		switch r.IntN(6) {
		case 0, 1, 2:
			n, maxWait := 1+r.IntN(6), time.Duration(0)
			if r.IntN(3) == 0 {
				maxWait = reserve.Forever
			}
			var got [2]*reserve.Reservation
			var failed [2]error
			for i, by := range both {
				r, err := by.ReserveWithin(context.Background(), n, maxWait)
				got[i], failed[i] = &r, err
			}
			log += fmt.Sprintf(" reserve %d within %v", n, maxWait)
			require.Equal(t, failed[0] == nil, failed[1] == nil, "%s: %v, %v", log, failed[0], failed[1])
			if failed[0] == nil {
				require.InDelta(t, got[0].Delay(), got[1].Delay(), 2, log)
				held, since = append(held, got), append(since, time.Now())
			}
		case 3:
			d := time.Duration(r.ExpFloat64() * float64(20*time.Second))
			log += fmt.Sprintf(" sleep %v", d)
			time.Sleep(d)
		default:
			waits := slices.ContainsFunc(held, func(of [2]*reserve.Reservation) bool { return of[1].Delay() > 0 })
			if len(held) == 0 || waits {
				continue
			}
			i := r.IntN(len(held))
			if time.Since(since[i]) > time.Minute {
				continue
			}
			n := max(0, r.IntN(2*held[i][0].Permits())-held[i][0].Permits())
			log += fmt.Sprintf(" settle %d at %d", held[i][0].Permits(), n)
			for _, of := range held[i] {
				of.Settle(n)
			}
			held, since = slices.Delete(held, i, i+1), slices.Delete(since, i, i+1)
		}
	}
}
