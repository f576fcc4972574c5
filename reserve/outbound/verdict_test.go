package outbound

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// asked is a charge, as a decision sees it.
func asked(name string, permits int, said *reply.Limit) charge {
	return charge{Permits: permits, limit: &limit{name: name}, said: said}
}

func exactly(a charge) charge { a.limit.exact = true; return a }

func forAll(a charge) charge { a.limit.whole = true; return a }

func lateNamed(a charge) charge { a.named = true; return a }

// Each rule, by itself.
func TestDecide(t *testing.T) {
	const s = time.Second
	gone := func(d time.Duration) *reply.Limit { return &reply.Limit{Stop: d} }
	ordinary := rules{retries: 3, maxRetryAfter: 5 * time.Minute}
	paused := rules{retries: 3, maxRetryAfter: 5 * time.Minute, pauseRefused: true}
	first := tries{number: 1, repeatable: true}
	requests, tokens := asked("", 1, nil), asked("tokens", 100, nil)
	is := func(o outcome) ruling { return ruling{outcome: o} }
	guilty := func(stop, pause time.Duration) ruling {
		return ruling{blamed: true, outcome: refused, stop: stop, pause: pause}
	}
	for _, c := range []struct {
		rule    string
		rules   rules
		says    reply.Reply
		charges []charge
		tries   tries
		want    verdict
		rulings []ruling
	}{
		{
			"a cached response says nothing", ordinary, reply.Reply{Cached: true}, []charge{requests}, first,
			verdict{}, []ruling{{}},
		}, {
			"an acceptance is one for all limits", ordinary, reply.Reply{Status: 200}, []charge{requests, tokens}, first,
			verdict{}, []ruling{is(accepted), is(accepted)},
		}, {
			"a limit of which nothing is left stops", ordinary, reply.Reply{Status: 200},
			[]charge{requests, asked("tokens", 100, gone(7*s))}, first,
			verdict{}, []ruling{is(accepted), {outcome: accepted, stop: 7 * s}},
		}, {
			"but no longer than WithMaxRetryAfter", ordinary, reply.Reply{Status: 200}, []charge{asked("", 1, gone(time.Hour))}, first,
			verdict{}, []ruling{{outcome: accepted, stop: 5 * time.Minute}},
		}, {
			"also a redirect's, which nobody may follow", ordinary, reply.Reply{Status: 302}, []charge{asked("", 1, gone(7*s))}, first,
			verdict{}, []ruling{{outcome: accepted, stop: 7 * s}},
		}, {
			"nor a limit that counts as the server does", ordinary, reply.Reply{Status: 200},
			[]charge{exactly(asked("", 1, gone(7*s)))}, first,
			verdict{}, []ruling{is(accepted)},
		}, {
			"a bucket stops until it has what a call like this costs", ordinary, reply.Reply{Status: 200},
			[]charge{asked("tokens", 100, &reply.Limit{Name: "tokens", Bucket: true, Left: 20, Rate: 40})}, first,
			verdict{}, []ruling{{outcome: accepted, stop: 2 * s, owed: true}},
		}, {
			"nothing left for a moment", ordinary, reply.Reply{Status: 200}, []charge{asked("", 1, &reply.Limit{Short: true})}, first,
			verdict{}, []ruling{{outcome: short}},
		},

		{
			"a refusal with a time stops its limit", ordinary, reply.Reply{Status: 429, Refused: true, Told: true, After: 2 * s},
			[]charge{requests, tokens}, first,
			verdict{refused: true, again: true, after: 2 * s, stop: 2 * s}, []ruling{guilty(2*s, 2*s), {}},
		}, {
			"the one that it names", ordinary,
			reply.Reply{Status: 429, Refused: true, Told: true, After: 2 * s, Reason: "tokens"}, []charge{requests, tokens}, first,
			verdict{refused: true, again: true, after: 2 * s, stop: 2 * s}, []ruling{{}, guilty(2*s, 2*s)},
		}, {
			"or the one of which too little is left", ordinary, reply.Reply{Status: 429, Refused: true, Told: true, After: 2 * s},
			[]charge{requests, asked("tokens", 100, &reply.Limit{Name: "tokens", Left: 99})}, first,
			verdict{refused: true, again: true, after: 2 * s, stop: 2 * s}, []ruling{{}, guilty(2*s, 2*s)},
		}, {
			"the time may be that of the limit", ordinary, reply.Reply{Status: 429, Refused: true},
			[]charge{asked("tokens", 1, &reply.Limit{Name: "tokens", Stop: 9 * s})}, first,
			verdict{refused: true, again: true, after: 9 * s, stop: 9 * s}, []ruling{guilty(9*s, 0)},
		}, {
			"a time beyond WithMaxRetryAfter is an answer", ordinary,
			reply.Reply{Status: 429, Refused: true, Told: true, After: time.Hour}, []charge{tokens}, first,
			verdict{refused: true, after: time.Hour, stop: 5 * time.Minute}, []ruling{guilty(5*time.Minute, 5*time.Minute)},
		}, {
			"PauseRefused stops only the call", paused, reply.Reply{Status: 429, Refused: true, Told: true, After: 2 * s}, []charge{tokens}, first,
			verdict{refused: true, again: true, after: 2 * s, stop: 2 * s, resume: 2 * s}, []ruling{guilty(0, 0)},
		}, {
			"and so does a refusal of a call that no limit counts", ordinary,
			reply.Reply{Status: 429, Refused: true, Told: true, After: 2 * s}, nil, first,
			verdict{refused: true, again: true, after: 2 * s, stop: 2 * s, resume: 2 * s}, []ruling{},
		}, {
			"a refusal without a time stops only the call", ordinary, reply.Reply{Status: 429, Refused: true}, []charge{tokens}, first,
			verdict{refused: true, again: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		}, {
			"for longer each time", ordinary, reply.Reply{Status: 429, Refused: true}, []charge{tokens},
			tries{number: 3, refusals: 2, repeatable: true},
			verdict{refused: true, again: true, after: 4 * s, resume: 4 * s, refusals: 3}, []ruling{guilty(0, 0)},
		}, {
			"up to a minute", ordinary, reply.Reply{Status: 429, Refused: true}, []charge{tokens},
			tries{number: 3, refusals: 99, repeatable: true},
			verdict{refused: true, again: true, after: time.Minute, resume: time.Minute, refusals: 100}, []ruling{guilty(0, 0)},
		}, {
			"unless others were accepted meanwhile", ordinary, reply.Reply{Status: 429, Refused: true}, []charge{tokens},
			tries{number: 3, refusals: 2, relieved: true, repeatable: true},
			verdict{refused: true, again: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		}, {
			"WithRetries is how often", ordinary, reply.Reply{Status: 429, Refused: true}, []charge{tokens}, tries{number: 4, repeatable: true},
			verdict{refused: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		}, {
			"what no retry mends is an answer", ordinary, reply.Reply{Status: 429, Refused: true, Final: true}, []charge{tokens}, first,
			verdict{refused: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		}, {
			"a bare 503 leaves open whether it was carried out", ordinary, reply.Reply{Status: 503, Refused: true}, []charge{tokens}, tries{number: 1},
			verdict{refused: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		}, {
			"unless the caller does not mind", rules{retries: 1, maxRetryAfter: time.Minute, repeatAny: true},
			reply.Reply{Status: 503, Refused: true}, []charge{tokens}, tries{number: 1},
			verdict{refused: true, again: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		}, {
			"with a time it was not", ordinary, reply.Reply{Status: 503, Refused: true, Told: true, After: s}, []charge{tokens}, tries{number: 1},
			verdict{refused: true, again: true, after: s, stop: s}, []ruling{guilty(s, s)},
		}, {
			"a refusal of all calls stops the limit that holds for all", ordinary,
			reply.Reply{Status: 429, Refused: true, Told: true, After: s, Whole: true},
			[]charge{forAll(asked("", 1, nil)), asked("", 1, gone(9*s))}, first,
			verdict{refused: true, again: true, after: s, stop: s}, []ruling{guilty(s, s), {}},
		}, {
			"or the limit that it names", ordinary,
			reply.Reply{Status: 429, Refused: true, Told: true, After: s, Whole: true, Reason: "tokens"},
			[]charge{forAll(asked("", 1, nil)), tokens}, first,
			verdict{refused: true, again: true, after: s, stop: s}, []ruling{{}, guilty(s, s)},
		}, {
			"a limit that only the refusal names stops, and learns nothing", ordinary,
			reply.Reply{Status: 429, Refused: true, Told: true, After: s}, []charge{requests, lateNamed(asked("", 1, nil))}, first,
			verdict{refused: true, again: true, after: s, stop: s}, []ruling{{}, {blamed: true, stop: s, pause: s}},
		}, {
			"nor by 429", ordinary, reply.Reply{Status: 429, Refused: true}, []charge{tokens}, tries{number: 1},
			verdict{refused: true, again: true, after: s, resume: s, refusals: 1}, []ruling{guilty(0, 0)},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			require.Equal(t, c.want, c.rules.decide(&c.says, c.charges, c.tries))
			for i, a := range c.charges {
				require.Equal(t, c.rulings[i], a.ruling, i)
			}
		})
	}
}

// Requests that were refused together come back spread over half of the backoff; one by itself waits all of it.
func TestBackOffSpreads(t *testing.T) {
	after := func(refusals int, others int64) time.Duration {
		var v verdict
		v.refusals = refusals
		v.backOff(tries{others: others})
		require.Equal(t, v.after, v.resume)
		return v.after
	}
	require.Equal(t, time.Second, after(0, 17), "after the first refusal nobody has waited yet")
	require.Equal(t, 8*time.Second, after(3, 0))
	require.Equal(t, time.Minute, after(99, 0))
	var times []time.Duration
	for others := range int64(64) {
		times = append(times, after(3, others))
	}
	slices.Sort(times)
	require.Greater(t, times[0], 4*time.Second)
	for i := range times[1:] {
		require.Less(t, times[i+1]-times[i], 4*time.Second/64*3)
	}
}
