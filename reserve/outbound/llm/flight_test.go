package llm

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// While a server refuses all without saying for how long, a call waits and then goes alone. One whose context ends
// before has cost no tokens.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, sent := 529, 0
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			sent++
			return says(status, `{"usage":{"input_tokens":1,"output_tokens":1}}`)
		}), Anthropic(), Limits{RequestsPerMinute: 1000, InputTokensPerMinute: 1e6, OutputTokensPerMinute: 1e6})
		require.NoError(t, err)
		begin := time.Now()
		for range 5 { // the third in a row counts, then it rests for 1 s and 2 s
			post(transport, "https://a/v1/messages", question)
		}
		require.Equal(t, 3*time.Second, time.Since(begin).Round(time.Millisecond))
		require.Equal(t, 5, sent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://a/v1/messages", strings.NewReader(question))
		_, err = transport.RoundTrip(r)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5, sent)
		require.Zero(t, transport.held(outputTokens))
		status = 200
		for range 3 {
			code, err := post(transport, "https://a/v1/messages", question)
			require.NoError(t, err)
			require.Equal(t, 200, code)
		}
		require.Equal(t, 7*time.Second, time.Since(begin).Round(time.Second))
		transport.requireOver(t)
	})
}

// The wait for a place in flight is one in the queue: the hook is told, and the longest wait holds.
func TestWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		out, sent := 0, 0
		var told []outbound.Waiting
		transport, err := New(trip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if sent++; out > 0 {
				return says(503, "{}"), nil
			}
			out++
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			out--
			return used(1, 1), nil
		}), Gemini(), Limits{}, WithOutbound(outbound.WithMaxWait(5*time.Second),
			outbound.WithHooks(outbound.Hooks{Waiting: func(_ *http.Request, w outbound.Waiting) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, w)
			}})))
		require.NoError(t, err)
		go post(transport, api, question)
		synctest.Wait()
		status, _ := post(transport, api, question)
		require.Equal(t, 503, status)
		begin := time.Now()
		_, err = post(transport, api, question)
		require.ErrorAs(t, err, new(*reserve.WaitError))
		require.Equal(t, 5*time.Second, time.Since(begin).Round(time.Millisecond))
		mu.Lock()
		require.Equal(t, 2, sent)
		mu.Unlock()
		require.Equal(t, []outbound.Waiting{{Why: outbound.Crowded}}, told)
		time.Sleep(time.Minute)
		transport.requireOver(t)
	})
}
