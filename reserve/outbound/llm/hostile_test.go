package llm

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// Whatever a server answers, no call outlasts its deadline, and a day after the server has become a friendly one all
// calls go again. PACE_RANDOM sets the number of servers.
func TestHostileServers(t *testing.T) {
	runs := 300
	if n, err := strconv.Atoi(os.Getenv("PACE_RANDOM")); err == nil {
		runs = n
	}
	first := rand.Uint64N(1 << 40)
	for seed := first; seed < first+uint64(runs); seed++ {
		synctest.Test(t, func(t *testing.T) {
			h := &hostile{random: rand.New(rand.NewPCG(seed, 40))}
			transport := h.transport(t)
			var all sync.WaitGroup
			for range h.below(8) + 1 {
				all.Go(func() {
					for range 12 {
						_, _ = h.call(t, transport, time.Duration(1+h.below(60))*time.Second)
					}
				})
			}
			all.Wait()
			h.friendly = true
			time.Sleep(26 * time.Hour)
			for range 10 {
				status, err := h.call(t, transport, 10*time.Minute)
				require.NoError(t, err, seed)
				require.Equal(t, 200, status, seed)
			}
		})
	}
}

// hostile is a server whose answers have headers and bodies that no server should send.
type hostile struct {
	mu       sync.Mutex
	random   *rand.Rand
	friendly bool
}

func (h *hostile) below(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.IntN(n)
}

func (h *hostile) transport(t *testing.T) http.RoundTripper {
	var opts []outbound.Option
	for _, opt := range []outbound.Option{
		outbound.Adaptive(), outbound.WithRetries(1 + h.below(3)), outbound.PauseRefused(), outbound.WithMaxInFlight(2),
		outbound.WithLimit(outbound.Limit{Name: "a", Limiter: pace.Must(pace.NewBursty(20)), Penalty: 30 * time.Second}),
	} {
		if h.below(3) == 0 {
			opts = append(opts, opt)
		}
	}
	if h.below(3) == 0 {
		l := Limits{RequestsPerMinute: 60 * h.below(2), TokensPerMinute: 10_000 * h.below(2)}
		transport, err := New(h, OpenAI(), l, WithOutbound(opts...))
		require.NoError(t, err)
		return transport
	}
	limiters := []reserve.Reserver{
		nil, pace.Must(pace.NewBursty(50)), pace.Must(pace.NewTokenBucket(5, 5)), pace.Must(window.New(10, time.Second)),
		pace.Must(calendar.New(100, calendar.Daily(time.UTC, 0))),
	}
	transport, err := outbound.New(h, limiters[h.below(len(limiters))], opts...)
	require.NoError(t, err)
	return transport
}

func (h *hostile) call(t *testing.T, by http.RoundTripper, within time.Duration) (status int, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	body := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://a.test/v1/chat/completions", body)
	require.NoError(t, err)
	begin := time.Now()
	response, err := by.RoundTrip(r)
	require.LessOrEqual(t, time.Since(begin), within)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Body.Close()
}

func (h *hostile) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	r.Body.Close()
	answer := &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("{}"))}
	if h.friendly {
		return answer, nil
	}
	if h.random.IntN(20) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	pick := func(list []string) string { return list[h.random.IntN(len(list))] }
	answer.StatusCode, _ = strconv.Atoi(pick(hostileStatuses))
	for range h.random.IntN(6) {
		answer.Header.Add(pick(hostileNames), pick(hostileValues))
	}
	answer.Body = io.NopCloser(strings.NewReader(pick(hostileBodies)))
	return answer, nil
}

var (
	hostileStatuses = strings.Fields("200 200 200 200 429 429 503 529 403 500 502 404 400 401 301 100 0 999")
	hostileNames    = func() (names []string) {
		for _, of := range []string{"Limit", "Remaining", "Reset"} {
			for _, name := range []string{"Ratelimit-%s", "X-Ratelimit-%s", "X-Rate-Limit-%s", "X-Ratelimit-%s-Requests",
				"X-Ratelimit-%s-Tokens", "Anthropic-Ratelimit-Requests-%s", "Anthropic-Ratelimit-Input-Tokens-%s"} {
				names = append(names, fmt.Sprintf(name, of))
			}
		}
		return append(names, strings.Fields(`Retry-After Retry-After-Ms X-Ms-Retry-After-Ms X-Ratelimit-Reset-After
			X-Ratelimit-Bucket X-Ratelimit-Global X-Ratelimit-Scope X-Ratelimit-Resource Ratelimit Ratelimit-Policy Date
			X-Should-Retry Content-Type`)...)
	}()
	hostileValues = strings.Split(`0|1|-1|5|100|9223372036854775807|18446744073709551616|1e300|1e-300|NaN|Inf|0.001|`+
		`1700000000|1800000000000|99999999999|6m0s|1ms|9999999h|2262-04-11T23:47:16Z|9999-12-31T23:59:59Z|`+
		`Fri, 31 Dec 9999 23:59:59 GMT|Mon, 01 Jan 0001 00:00:00 GMT|a||"a";q=100;w=60|"a";q=9223372036854775807;w=1|`+
		`"a";r=0;t=9223372036854775807|"a";r=5;t=1|"a";r=0;t=0|true|application/json|text/event-stream|shared`, "|")
	hostileBodies = []string{
		`{"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":-5,"total_tokens":1e300}}`,
		`{"error":{"message":"try again in 9999999h","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",` +
			`"retryDelay":"315576000000s"}],"retry_after":1e300}}`,
		`{"usage":`, ``,
	}
)
