package file_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/file"
)

// Limiters in a folder are Reservers like any other: the packages that pace calls, answer them, or limit them by key
// take them as they take Redis's.
func TestWhereverALimiterGoes(t *testing.T) {
	store := reserve.Must(file.Open(t.TempDir()))
	day := func(n int) *reserve.Policy {
		return reserve.Must(calendar.Policy(n, calendar.Daily(time.UTC, 0), reserve.WithMaxWait(0)))
	}
	slow := shared.WithTimeout(time.Minute)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
	}))
	defer model.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var wait *reserve.WaitError

	t.Run("outbound", func(t *testing.T) {
		by := reserve.Must(shared.NewIn(store, "outbound", day(2), slow))
		client := &http.Client{Transport: reserve.Must(outbound.New(nil, by))}
		for i := range 3 {
			response, err := client.Get(model.URL)
			if i == 2 {
				require.ErrorAs(t, err, &wait)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
	})
	t.Run("llm", func(t *testing.T) {
		var tokens *shared.Limiter
		transport := reserve.Must(llm.New(nil, llm.OpenAI(), llm.Limits{TokensPerDay: 1000},
			llm.WithLimiters(func(limit string, key llm.Key) reserve.Reserver {
				if limit != "tokens-per-day" {
					return nil
				}
				tokens = reserve.Must(shared.NewIn(store, limit+"/"+key.String(), day(1000), slow))
				return tokens
			})))
		body := `{"model":"gpt-5","messages":[{"role":"user","content":"Say hello."}],"max_completion_tokens":100}`
		response, err := (&http.Client{Transport: transport}).Post(
			model.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		require.NoError(t, response.Body.Close())
		left, err := tokens.Stored(t.Context())
		require.NoError(t, err)
		require.Equal(t, 988.0, left, "what was estimated has come back")
	})
	t.Run("inbound", func(t *testing.T) {
		users := reserve.Must(shared.NewKeyedIn(store, day(2), slow))
		user := func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }
		limited := reserve.Must(inbound.New([]inbound.Tier{inbound.PerKeyBy("user", user, users)})).Handler(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for i, want := range []int{200, 200, 429, 200} {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("User", []string{"ann", "ann", "ann", "bob"}[i])
			answer := httptest.NewRecorder()
			limited.ServeHTTP(answer, r)
			require.Equal(t, want, answer.Code)
		}
	})
	t.Run("keyed", func(t *testing.T) { // each key's day is in the folder, its rate in this process
		days := reserve.Must(shared.NewKeyedIn(store, day(3), slow))
		rates := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1000, pace.WithCapacity(10)) })
		both := reserve.All(rates.For("tenant"), days.For("tenant"))
		for i := range 4 {
			_, err := reserve.Acquire(context.Background(), both, 1)
			require.Equal(t, i == 3, errors.As(err, &wait), err)
		}
	})
}
