package outbound

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// What follows from what a response says, for which limit, without a call.
func TestStageLesson(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		said  reply.Reply
		want  verdict
		stops [2]time.Duration // of a limit without a name, and of "tokens"
		n     [2]uint64        // refusals
	}{
		"an acceptance": {said: reply.Reply{Status: 200}},
		"nothing left": {
			said:  reply.Reply{Status: 200, Limits: []reply.Limit{{Name: "tokens", Stop: 7 * s}}},
			stops: [2]time.Duration{0, 7 * s},
		},
		"a refusal by a limit": {
			said:  reply.Reply{Status: 429, Refused: true, Told: true, After: 5 * s, Reason: "tokens"},
			want:  verdict{refused: true, again: true, after: 5 * s, stop: 5 * s},
			stops: [2]time.Duration{0, 5 * s}, n: [2]uint64{0, 1},
		},
		"a refusal of a key": {
			said:  reply.Reply{Status: 429, Refused: true, Told: true, After: 5 * s},
			want:  verdict{refused: true, again: true, after: 5 * s, stop: 5 * s},
			stops: [2]time.Duration{5 * s, 0}, n: [2]uint64{1, 0},
		},
		"a cached response": {said: reply.Reply{Cached: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := reserve.Must(New(nil, nil, WithRetries(1)))
				var charges []charge
				var states []*limitState
				for _, limit := range []*limit{{}, {name: "tokens"}} {
					by := reserve.Must(pace.NewBursty(10))
					state := new(limitState)
					charges = append(charges, charge{By: by, of: lim.Of(by), Permits: 1, limit: limit, state: state})
					states = append(states, state)
				}
				l := lesson{
					of: &attempt{
						t: transport, way: &way{charges: charges, own: 2}, response: status(c.said.Status), sent: time.Now(), heard: time.Now(),
					},
					said: c.said, charges: charges, states: &states, tries: tries{number: 1, repeatable: true},
				}
				l.match()
				v := l.decide()
				l.stops(&v, false)
				l.teach(&v)
				require.Equal(t, c.want, v)
				for i, a := range charges {
					require.Equal(t, c.n[i], a.state.refused.Load(), i)
					var stopped time.Duration
					if end := a.state.stop(time.Now()); !end.IsZero() {
						stopped = time.Until(end)
					}
					require.Equal(t, c.stops[i], stopped, i)
					require.Equal(t, stopped > 0, a.By.(*reserve.Limiter).NextFree().After(time.Now()), "its limiter too")
				}
			})
		})
	}
}
