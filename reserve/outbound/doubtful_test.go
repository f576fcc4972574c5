package outbound

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/adapt"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A refusal that names no limit casts doubt on the limit that lets the fewest such calls go: the server may count calls in
// smaller portions, whatever limit stands last.
func TestDoubtful(t *testing.T) {
	scope := (&Limit{Limiter: fiftyAtOnce()}).scope()
	of := func(name string, permits int, rate float64) charge {
		return charge{
			Permits: permits, key: sharedKey{}, limit: &limit{name: name, scope: scope},
			belief: &belief{told: adapt.NewTold(rate, rate, false)},
		}
	}
	calls, tokens := of("requests", 1, 1), of("tokens", 1000, 20_000)
	silent := charge{key: sharedKey{}, limit: &limit{scope: scope}, belief: new(belief)}
	for name, c := range map[string]struct {
		last   func(a charge) charge
		reason string
		want   int
	}{
		"nothing is named":    {nil, "", 0},
		"the reason names it": {nil, "tokens", 1},
		"a header tells of it": {func(a charge) charge {
			a.said = new(reply.Limit)
			return a
		}, "", 1},
		"of another key": {func(a charge) charge {
			a.key = "a"
			return a
		}, "", 1},
		"of a part of the calls": {func(a charge) charge {
			a.limit = &limit{scope: scope, part: new(part)}
			return a
		}, "", 1},
		"a large call": {func(a charge) charge {
			a.Permits = 40_000
			return a
		}, "", 1},
		"a limit that tells no rate": {func(charge) charge { return silent }, "", 0},
	} {
		all := charges{calls, tokens}
		if c.last != nil {
			all[1] = c.last(tokens)
		}
		require.Same(t, &all[c.want], all.doubtful(&all[1], c.reason), name)
	}
}
