package outbound

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// Key, cost and recost of a request, and its retry, read its body once, and it is sent whole each time.
func TestBodyIsReadOnce(t *testing.T) {
	var sent []string
	read := 0
	base := tripper(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, string(body))
		status := 200
		if len(sent) == 1 {
			status = 429
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody}, nil
	})
	cost := func(r *http.Request) int { return len(Body(r)) }
	channel := func(r *http.Request) string { return string(Body(r)[:1]) }
	limiter := reserve.Must(pace.NewBursty(1e9))
	tr := reserve.Must(New(base, nil, WithRetries(1), WithMaxInFlight(3, channel), WithLimit(Limit{
		Keyed: Keyed(channel, func(string) reserve.Reserver { return limiter }), Cost: cost, Recost: cost,
	})))
	r, _ := http.NewRequest(http.MethodPost, "http://a.test/", strings.NewReader("points"))
	get := r.GetBody
	r.GetBody = func() (io.ReadCloser, error) { read++; return get() }
	_, err := tr.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, []string{"points", "points"}, sent)
	require.Equal(t, 2, read, "once by all functions, once for the second attempt")
	require.Equal(t, "points", string(Body(r)), "outside of a transport, too")
	require.Nil(t, Body(&http.Request{}))
}
