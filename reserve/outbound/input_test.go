package outbound

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// What is nil is reported where it is given.
func TestNil(t *testing.T) {
	var limiter *reserve.Limiter
	var base *http.Transport
	var clock *clockwork.FakeClock
	none := func(string) reserve.Reserver { return nil }
	option := func(opt Option) func() { return func() { New(nil, nil, opt) } }
	for _, c := range []struct {
		want string
		make func()
	}{
		{"base is <nil>; want a RoundTripper, or nil without a type", func() { New(base, nil) }},
		{"the limiter is <nil>; want a Reserver, or nil without a type", func() { New(nil, limiter) }},
		{"an option is <nil>; want an option", func() { New(nil, nil, Adaptive(), nil) }},
		{"the key function is <nil>; want a function", func() { Keyed(nil, none) }},
		{"the limiter function is <nil>; want a function", func() { Keyed[string](Host, nil) }},
		{"the key function is <nil>; want a function", option(PerKey(nil, none))},
		{"the limiter function is <nil>; want a function", option(PerKey[string](Host, nil))},
		{"WithLimit is <nil>; want a Limiter or Keyed", option(WithLimit(Limit{}))},
		{"WithLimit is <nil>; want a Limiter or Keyed", option(WithLimit(Limit{Limiter: limiter}))},
		{"the key of WithMaxInFlight is <nil>; want a function", option(WithMaxInFlight(1, nil))},
		{"WithCost is <nil>; want a function that says what a request costs", option(WithCost(nil, nil))},
		{"WithLogger is <nil>; want a logger", option(WithLogger(nil, 0))},
		{"WithClock is <nil>; want a clock", option(WithClock(nil))},
		{"WithClock is <nil>; want a clock", option(WithClock(clock))},
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				require.EqualError(t, err, "outbound: "+c.want)
				require.IsType(t, &reserve.ValueError{}, err)
			}()
			c.make()
		}()
	}
	New(nil, nil, WithHooks(Hooks{}), WithCost(one, nil)) // these may be nil
}

// A value that makes no sense is named by every request, and so is a key without a limiter.
func TestBadInput(t *testing.T) {
	var limiter *reserve.Limiter
	by := func(by reserve.Reserver) Option { return PerKey(Host, func(string) reserve.Reserver { return by }) }
	for _, c := range []struct {
		want string
		opt  Option
	}{
		{"WithMaxInFlight is 0; want at least 1, and one key function or none", WithMaxInFlight(0)},
		{"WithMaxInFlight is 1; want at least 1, and one key function or none", WithMaxInFlight(1, Host, Host)},
		{"WithRetryBudget is -1; want 0 or more", WithRetryBudget(-1)},
		{"the limiter of a:80 is <nil>; want a Reserver", by(nil)},
		{"the limiter of a:80 is <nil>; want a Reserver", by(limiter)},
		{"the limiter of {} is <nil>; want a Reserver", WithLimit(Limit{
			Keyed: func(*http.Request) (any, reserve.Reserver) { return whole{}, nil },
		})},
	} {
		b := &body{Reader: strings.NewReader("x")}
		r, err := http.NewRequest(http.MethodPost, "http://a", b)
		require.NoError(t, err)
		transport := New(nil, nil, c.opt)
		_, err = transport.RoundTrip(r)
		require.EqualError(t, err, "outbound: "+c.want)
		require.IsType(t, &reserve.ValueError{}, err)
		require.Equal(t, int64(1), b.closed.Load())
		_, again := transport.Begin(rpc())
		require.Equal(t, err, again)
	}
}
