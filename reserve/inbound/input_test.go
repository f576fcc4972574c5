package inbound_test

import (
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
)

func TestBadInput(t *testing.T) {
	policy := reserve.Must(pace.Bursty(1))
	global := inbound.Global("global", policy)
	for want, c := range map[string]struct {
		tiers []inbound.Tier
		opt   inbound.Option
	}{
		"inbound: tiers is 0; want at least 1":                          {nil, nil},
		"inbound: a tier is <nil>; want one from Global or PerKey":      {[]inbound.Tier{{}}, nil},
		`inbound: a tier's name is "global"; want `:                     {[]inbound.Tier{global, global}, nil},
		`inbound: a tier's name is ""; want `:                           {[]inbound.Tier{inbound.Global("", policy)}, nil},
		`inbound: a tier's name is "a\"b"; want `:                       {[]inbound.Tier{inbound.Global(`a"b`, policy)}, nil},
		`inbound: a tier's name is "a\r\nb"; want `:                     {[]inbound.Tier{inbound.Global("a\r\nb", policy)}, nil},
		"inbound: the policy of tier x is <nil>; want a policy":         {[]inbound.Tier{inbound.Global("x", nil)}, nil},
		"inbound: the policy of tier y is <nil>; want a policy":         {[]inbound.Tier{inbound.PerKey("y", user, nil)}, nil},
		"inbound: the limiter of tier x is <nil>; want a limiter":       {[]inbound.Tier{inbound.GlobalBy("x", nil)}, nil},
		"inbound: the limiters of tier x is <nil>; want limiters":       {[]inbound.Tier{inbound.PerKeyBy("x", user, nil)}, nil},
		"inbound: the key of tier x is <nil>; want a function":          {[]inbound.Tier{inbound.PerKey[int]("x", nil, policy)}, nil},
		"inbound: the limiter of tier p is <nil>; want a limiter":       {[]inbound.Tier{inbound.GlobalBy("p", (*reserve.Limiter)(nil))}, nil},
		"inbound: the limiters of tier p is <nil>; want limiters":       {[]inbound.Tier{inbound.PerKeyBy("p", user, (*keyed.Limiters[string])(nil))}, nil},
		"inbound: the limiters of tier f is <nil>; want limiters":       {[]inbound.Tier{inbound.PerKeyBy("f", user, byFunc[string](nil))}, nil},
		"inbound: the key of tier y is <nil>; want a function":          {[]inbound.Tier{inbound.PerKeyBy("y", nil, keyed.New(func(int) (*reserve.Policy, error) { return policy, nil }))}, nil},
		"inbound: the key of tier b is <nil>; want a function":          {[]inbound.Tier{inbound.PerKey("b", inbound.Both[int](nil, user), policy)}, nil},
		"inbound: the key of tier d is <nil>; want a function":          {[]inbound.Tier{inbound.PerKey("d", inbound.Both[string, int](user, nil), policy)}, nil},
		`inbound: tier "o": inbound: option 1 is <nil>; want an option`: {[]inbound.Tier{inbound.Global("o", policy, nil)}, nil},
		`inbound: tier "q": inbound: option 2 is <nil>; want an option`: {[]inbound.Tier{inbound.PerKey("q", user, policy, inbound.DryRun(), nil)}, nil},
		"inbound: WithCost is <nil>; want a function":                   {[]inbound.Tier{global}, inbound.WithCost(nil)},
		"inbound: WithSkip is <nil>; want a function":                   {[]inbound.Tier{global}, inbound.WithSkip(nil)},
		"inbound: WithRefusal is <nil>; want a function":                {[]inbound.Tier{global}, inbound.WithRefusal(nil)},
		"inbound: WithOnFailure is <nil>; want a function":              {[]inbound.Tier{global}, inbound.WithOnFailure(nil)},
		"inbound: Quota is 0; want 1 to 999999999999999 requests":       {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(0, s))}, nil},
		"inbound: Quota is -1; want 1 to 999999999999999 requests":      {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(-1, s))}, nil},
		"inbound: Quota is 1.5s; want a window of whole seconds":        {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(1, 1500*time.Millisecond))}, nil},
		"inbound: Quota is 0s; want a window of whole seconds":          {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(1, 0))}, nil},
		"inbound: WithQueue is 0s; want a positive wait":                {[]inbound.Tier{global}, inbound.WithQueue(0, 1)},
		"inbound: WithQueue is 0; want at least 1 request":              {[]inbound.Tier{global}, inbound.WithQueue(s, 0)},
		"inbound: WithTarpit is -1s; want a positive delay":             {[]inbound.Tier{global}, inbound.WithTarpit(-s, 1)},
		"inbound: WithTarpit is -1; want at least 1 request":            {[]inbound.Tier{global}, inbound.WithTarpit(s, -1)},
		"inbound: WithJitter is -1s; want 0 or more":                    {[]inbound.Tier{global}, inbound.WithJitter(-s)},
	} {
		var opts []inbound.Option
		if c.opt != nil {
			opts = append(opts, c.opt)
		}
		m, err := inbound.New(c.tiers, opts...)
		require.ErrorContains(t, err, want)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value)
		require.Nil(t, m)
	}
	_, err := inbound.New([]inbound.Tier{global}, inbound.WithJitter(0), nil)
	require.EqualError(t, err, "inbound: option 2 is <nil>; want an option")
	require.PanicsWithError(t, "inbound: Handler is <nil>; want a handler", func() { build(t, []inbound.Tier{global}).Handler(nil) })
	if bits.UintSize == 64 { // more than a structured field can hold
		_, err := inbound.New([]inbound.Tier{inbound.Global("x", policy, inbound.Quota(math.MaxInt, s))})
		require.ErrorContains(t, err, "inbound: Quota is 9223372036854775807; want 1 to 999999999999999 requests")
	}
}
