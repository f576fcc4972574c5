package outbound

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

type answers func(r *http.Request) (int, http.Header)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header := a(r)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("x")), Request: r}, nil
}

func at(host string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.URL.Host == host }
}

// goes makes a call, and returns how long it took and its status.
func goes(t *testing.T, tr *Transport, url string) (time.Duration, int) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	begin := time.Now()
	resp, err := tr.RoundTrip(r)
	require.NoError(t, err)
	resp.Body.Close()
	return time.Since(begin), resp.StatusCode
}

func TestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Limit{Name: "slow", Limiter: reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))}
		tr, err := New(answers(func(*http.Request) (int, http.Header) { return 200, nil }), nil,
			Only(at("a.example"), WithLimit(slow), Only(func(r *http.Request) bool { return r.URL.Path == "/slower" },
				WithLimit(Limit{Name: "slower", Limiter: reserve.Must(pace.NewBursty(0.1, pace.WithBurst(0)))}))))
		require.NoError(t, err)
		total := func(url string) (d time.Duration) {
			for range 3 {
				took, _ := goes(t, tr, url)
				d += took
			}
			return d
		}
		require.Zero(t, total("https://b.example/slower"))
		require.Equal(t, 2*time.Second, total("https://a.example/"))
		require.Equal(t, 21*time.Second, total("https://a.example/slower"))
	})
}

// A refusal of a part stops its limits, and not those for all requests.
func TestOnlyStops(t *testing.T) {
	for name, limit := range map[string]Limit{"named": {Name: "x"}, "unnamed": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit.Limiter = reserve.Must(pace.NewBursty(1000))
				tr, err := New(answers(func(r *http.Request) (int, http.Header) {
					if r.URL.Path == "/bad" {
						return 429, http.Header{"Retry-After": {"30"}, "X-Ratelimit-Global": {"true"}}
					}
					return 200, nil
				}), reserve.Must(pace.NewBursty(1000)), Only(at("a.example"), WithLimit(limit)))
				require.NoError(t, err)
				goes(t, tr, "https://a.example/bad")
				d, _ := goes(t, tr, "https://b.example/")
				require.Less(t, d, time.Second)
				d, _ = goes(t, tr, "https://a.example/")
				require.InDelta(t, 30, d.Seconds(), 0.1)
			})
		})
	}
}

// A part's dialect and longest stop hold for its responses only; the caller's longest stop for all.
func TestOnlyRules(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option
		want time.Duration
	}{"part's": {nil, 10 * time.Minute}, "caller's": {[]Option{WithMaxRetryAfter(time.Minute)}, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, err := New(answers(func(*http.Request) (int, http.Header) { return 429, http.Header{"Wait": {"x"}} }), nil, append(c.opts,
					Only(at("a.example"), WithMaxRetryAfter(time.Hour), WithDialect(Dialect{Name: "a", Body: func(*http.Response, []byte) (RefusalBody, bool) {
						return RefusalBody{RetryAfter: 10 * time.Minute}, true
					}})))...)
				require.NoError(t, err)
				goes(t, tr, "https://a.example/")
				goes(t, tr, "https://b.example/")
				d, _ := goes(t, tr, "https://a.example/")
				require.Equal(t, c.want, d)
				d, _ = goes(t, tr, "https://b.example/")
				require.Zero(t, d)
			})
		})
	}
}

func TestOnlyInput(t *testing.T) {
	bad := errors.New("bad")
	all := func(*http.Request) bool { return true }
	for name, opt := range map[string]Option{
		"no function": Only(nil), "an option of another kind": Only(all, WithRetries(1)), "adaptive": Only(all, Adaptive()),
		"no option": Only(all, nil), "a bad option": Only(all, WithMaxInFlight(0)), "no maker": Options(nil),
		"a name twice": Only(all, WithLimit(Limit{Name: "x", InFlight: 1}), WithLimit(Limit{Name: "x", InFlight: 1})),
	} {
		_, err := New(nil, nil, opt)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value, name)
	}
	_, err := New(nil, nil, Options(func() ([]Option, error) { return nil, bad }))
	require.ErrorIs(t, err, bad)
	part := func() Option { return Only(all, WithLimit(Limit{Name: "x", InFlight: 1})) }
	_, err = New(nil, nil, WithLimit(Limit{Name: "x", InFlight: 1}), part(), part()) // each part has its own names
	require.NoError(t, err)
}

// Limit.Adaptive finds one limit's rate, and leaves the others'.
func TestLimitAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := reserve.Must(pace.NewBursty(100)), reserve.Must(pace.NewBursty(100))
		tr, err := New(answers(func(*http.Request) (int, http.Header) { return 429, nil }), nil,
			WithLimit(Limit{Name: "other", Limiter: other}), WithLimit(Limit{Name: "one", Limiter: one, Adaptive: true}))
		require.NoError(t, err)
		for range 5 {
			goes(t, tr, "https://a.example/")
			time.Sleep(10 * time.Second)
		}
		rates := map[string]float64{}
		for _, l := range tr.Snapshot().Limits {
			rates[l.Name] = l.Rate
		}
		require.Less(t, rates["one"], 100.)
		require.Equal(t, 100., rates["other"])
	})
	_, err := New(nil, nil, WithLimit(Limit{InFlight: 1, Adaptive: true}))
	require.Error(t, err)
}
