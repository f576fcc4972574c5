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

// What a request costs beyond all that its limit can hold at once is paid afterwards, unless it turns out that it has
// used less.
func TestTheRestIsPaid(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		used  func() (int, bool) // nil: nothing finds it out
		fails bool
		want  []time.Duration
	}{
		"without a usage":       {want: []time.Duration{0, 10 * s, 20 * s}},
		"no response":           {fails: true, want: []time.Duration{0, 10 * s, 20 * s}},
		"usage, no response":    {used: func() (int, bool) { return 1, true }, fails: true, want: []time.Duration{0, 10 * s, 20 * s}},
		"a usage not known":     {used: func() (int, bool) { return 0, false }, want: []time.Duration{0, 10 * s, 20 * s}},
		"a usage that is known": {used: func() (int, bool) { return 20, true }, want: []time.Duration{0, 2 * s, 4 * s}},
	} {
		for kind, limiter := range map[string]*reserve.Policy{
			"paid later":   reserve.Must(pace.Bursty(10, pace.WithCapacity(10), reserve.WithStored(10))),
			"paid upfront": reserve.Must(pace.TokenBucket(10, 10)),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := Limit{Name: "tokens", Limiter: limiter.Limiter(), Cost: func(*http.Request) int { return 100 }}
					if c.used != nil {
						l.Used = func(*http.Response) Usage { return told(c.used) }
					}
					transport := reserve.Must(New(tripper(func(r *http.Request) (*http.Response, error) {
						if c.fails {
							return nil, errors.New("no connection")
						}
						return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}, nil
					}), nil, WithLimit(l)))
					begin := time.Now()
					for _, want := range c.want {
						if kind == "paid later" && want > 0 {
							want -= s // it need not be full
						}
						r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a", nil)
						require.NoError(t, err)
						response, err := transport.RoundTrip(r)
						require.Equal(t, want, time.Since(begin).Round(time.Millisecond))
						if err == nil {
							io.Copy(io.Discard, response.Body)
							response.Body.Close()
						}
					}
				})
			})
		}
	}
}

// told is a usage that a function says.
type told func() (int, bool)

func (t told) Write(p []byte) (int, error) { return len(p), nil }
func (t told) Used() (int, bool)           { return t() }
