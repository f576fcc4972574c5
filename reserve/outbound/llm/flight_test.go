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
		require.Equal(t, 3*time.Second, time.Since(begin))
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

// A bound that is made while calls come and go counts each of them once.
func TestBoundIsMadeAmongCalls(t *testing.T) {
	for range 500 {
		f := &flight{}
		seats := make([]seat, 60)
		for i := range seats {
			require.NoError(t, f.enter(t.Context(), &seats[i]))
		}
		now := time.Now()
		var all sync.WaitGroup
		for i := range seats {
			all.Go(func() {
				if i%2 == 0 {
					f.refuse(now, now.Add(time.Second), seats[i].level)
				}
				f.leave(&seats[i])
			})
		}
		all.Wait()
		require.Zero(t, f.bound.Load().places.Out())
	}
}
