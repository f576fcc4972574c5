package outbound

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// Without a limiter each credential has a limit of its own: a stop of one token is not another's. A signature, which
// differs from call to call, is no credential.
func TestLearnedByCredential(t *testing.T) {
	for name, c := range map[string]struct {
		one, other string
		apart      bool
	}{
		"two tokens":        {"Bearer a", "Bearer b", true},
		"GitHub's":          {"token a", "token b", true},
		"two users":         {"Basic YTpi", "basic Yzpk", true},
		"a token, none":     {"Bearer a", "", true},
		"none":              {"", "", false},
		"the same":          {"Bearer a", "Bearer a", false},
		"two signatures":    {"AWS4-HMAC-SHA256 Signature=1", "AWS4-HMAC-SHA256 Signature=2", false},
		"a scheme only":     {"Bearer", "Basic", false},
		"a name, no scheme": {"secret1", "secret2", false},
	} {
		for _, header := range []string{"", "X-RateLimit-Resource: core"} {
			synctest.Test(t, func(t *testing.T) {
				status := 200
				transport := reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) {
					h := headers("X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 9")
					if header != "" {
						h = headers(header)
					}
					if status != 200 {
						h.Set("Retry-After", "60")
					}
					return &http.Response{StatusCode: status, Body: http.NoBody, Header: h}, nil
				}), nil))
				takes := func(credential string) time.Duration {
					r, err := http.NewRequest(http.MethodGet, "https://api.example.com/a", nil)
					require.NoError(t, err)
					r.Header.Set("Authorization", credential)
					begin := time.Now()
					response, err := transport.RoundTrip(r)
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
					return time.Since(begin)
				}
				require.Zero(t, takes(c.other))
				status = 429
				require.Zero(t, takes(c.one))
				status = 200
				want := time.Minute
				if c.apart {
					want = 0
				}
				require.Equal(t, want, takes(c.other), name)
				if c.apart {
					require.Equal(t, time.Minute, takes(c.one), name)
				}
			})
		}
	}
}
