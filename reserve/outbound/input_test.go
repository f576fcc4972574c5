package outbound

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// New returns an error for each bad value, and names it.
func TestBadOptions(t *testing.T) {
	var limiter *reserve.Limiter
	var base *http.Transport
	var clock *clockwork.FakeClock
	none := func(string) reserve.Reserver { return nil }
	for _, c := range []struct {
		want string
		base http.RoundTripper
		by   reserve.Reserver
		opt  Option
	}{
		{want: "base is <nil>; want a RoundTripper, or nil without a type", base: base, opt: Adaptive()},
		{want: "the limiter is <nil>; want a Reserver, or nil without a type", by: limiter, opt: Adaptive()},
		{want: "an option is <nil>; want an option"},
		{want: "PerKey is <nil>; want a key function and a limiter function", opt: PerKey(nil, none)},
		{want: "PerKey is <nil>; want a key function and a limiter function", opt: PerKey[string](Host, nil)},
		{want: "WithLimit \"\" is <nil>; want either a Limiter or Keyed", opt: WithLimit(Limit{})},
		{want: "WithLimit \"\" is <nil>; want either a Limiter or Keyed", opt: WithLimit(Limit{Limiter: limiter})},
		{want: "WithLimit \"\" is <nil>; want either a Limiter or Keyed", opt: WithLimit(Limit{Keyed: Keyed(nil, none)})},
		{want: "WithLimit \"\" is <nil>; want either a Limiter or Keyed", opt: WithLimit(Limit{Keyed: Keyed[string](Host, nil)})},
		{want: "the key of WithMaxInFlight is <nil>; want a function", opt: WithMaxInFlight(1, nil)},
		{want: "WithMaxInFlight is 0; want at least 1, and one key function or none", opt: WithMaxInFlight(0)},
		{want: "WithMaxInFlight is 1; want at least 1, and one key function or none", opt: WithMaxInFlight(1, Host, Host)},
		{want: "WithRetryBudget is -1; want a share of the requests: 0.1 is 10 %", opt: WithRetryBudget(-1)},
		{want: "WithRetryBudget is 10; want a share of the requests: 0.1 is 10 %", opt: WithRetryBudget(10)},
		{want: "WithRetries is -1; want 0 or more", opt: WithRetries(-1)},
		{want: "WithRetries is 0; want 1 or more: WithRetryBudget does nothing without", opt: WithRetryBudget(.1)},
		{want: "WithRetries is 0; want 1 or more: RetryNonIdempotent does nothing without", opt: RetryNonIdempotent()},
		{want: "WithLimit \"a\" is <nil>; want either a Limiter or Keyed",
			opt: WithLimit(Limit{Name: "a", Limiter: evenly10(), Keyed: Keyed(Host, none)})},
		{want: "WithLimit is \"a\"; want a name that no other limit has", opt: both(
			WithLimit(Limit{Name: "a", Limiter: evenly10()}), WithLimit(Limit{Name: "a", Limiter: evenly10()}))},
		{want: "WithLogger is <nil>; want a logger", opt: WithLogger(nil, 0)},
		{want: "WithClock is <nil>; want a clock", opt: WithClock(nil)},
		{want: "WithClock is <nil>; want a clock", opt: WithClock(clock)},
	} {
		transport, err := New(c.base, c.by, c.opt)
		require.EqualError(t, err, "outbound: "+c.want)
		require.IsType(t, &reserve.ValueError{}, err)
		require.Nil(t, transport)
	}
	_, err := New(nil, nil, WithHooks(Hooks{})) // these may be nil
	require.NoError(t, err)
}

// both is two options in one.
func both(a, b Option) Option {
	return func(s *settings) error {
		if err := a(s); err != nil {
			return err
		}
		return b(s)
	}
}

// A key without a limiter is known only when a request has that key.
func TestKeyWithoutLimiter(t *testing.T) {
	var limiter *reserve.Limiter
	by := func(by reserve.Reserver) Option { return PerKey(Host, func(string) reserve.Reserver { return by }) }
	for _, c := range []struct {
		want string
		opt  Option
	}{
		{"the limiter of a:80 is <nil>; want a Reserver", by(nil)},
		{"the limiter of a:80 is <nil>; want a Reserver", by(limiter)},
		{"the limiter of {} is <nil>; want a Reserver", WithLimit(Limit{
			Keyed: func(*http.Request) (any, reserve.Reserver) { return sharedKey{}, nil },
		})},
	} {
		b := &body{Reader: strings.NewReader("x")}
		r, err := http.NewRequest(http.MethodPost, "http://a", b)
		require.NoError(t, err)
		transport := reserve.Must(New(nil, nil, c.opt))
		_, err = transport.RoundTrip(r)
		require.EqualError(t, err, "outbound: "+c.want)
		require.IsType(t, &reserve.ValueError{}, err)
		require.Equal(t, int64(1), b.closed.Load())
		_, again := transport.Begin(rpc())
		require.Equal(t, err, again)
	}
}
