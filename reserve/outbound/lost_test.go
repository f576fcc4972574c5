package outbound

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

type noServer struct{}

func (noServer) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no server") }

// An attempt without a response costs its estimate, or what the limit says.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		lost func(*http.Request) (int, bool)
		want float64
	}{
		{nil, 100},
		{func(*http.Request) (int, bool) { return 30, true }, 30},
		{func(*http.Request) (int, bool) { return 30, false }, 100},
	} {
		limiter := reserve.Must(pace.NewTokenBucket(0.001, 1000))
		transport, err := New(noServer{}, nil, WithLimit(Limit{
			Name: "tokens", Limiter: limiter, Cost: func(*http.Request) int { return 100 }, Lost: c.lost,
		}))
		require.NoError(t, err)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a", nil)
		_, err = transport.RoundTrip(r)
		require.EqualError(t, err, "no server")
		require.InDelta(t, 1000-c.want, limiter.Stored(), 0.5)
	}
}
