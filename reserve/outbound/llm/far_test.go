package llm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/shared"
)

// farAway is a store a round trip of 100 ms away.
type farAway struct{ shared.Store }

func (f farAway) Update(ctx context.Context, key string, change func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	time.Sleep(50 * time.Millisecond)
	defer time.Sleep(50 * time.Millisecond)
	return f.Store.Update(ctx, key, change)
}

// sixty answers with 60 tokens used.
type sixty struct{}

func (sixty) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	time.Sleep(20 * time.Millisecond)
	body := io.NopCloser(strings.NewReader(`{"usage":{"prompt_tokens":20,"completion_tokens":40,"total_tokens":60}}`))
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, err
}

// 300 calls of 60 tokens at 54,000 a minute behind 6,000 that are stored take 13.3 s at best. Each asks two limits far
// away, one after the other: 60 s if each asks for itself.
func TestLimitsFarAway(t *testing.T) {
	for maxTokens, bound := range map[int]time.Duration{40: 20 * time.Second, 400: 24 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store := farAway{shared.Memory()}
			perMinute := map[string]float64{"requests": 6000, "tokens": 60_000}
			transport, err := llm.New(sixty{}, llm.OpenAI(), llm.Limits{}, llm.WithLimiters(func(limit string, key llm.Key) reserve.Reserver {
				n, known := perMinute[limit]
				if !known {
					return nil
				}
				policy := reserve.Must(pace.TokenBucket(reserve.Per(.9*n, time.Minute), .1*n))
				return reserve.Must(shared.NewIn(store, limit+"/"+key.String(), policy, shared.WithTimeout(5*time.Second), shared.WithAhead(32)))
			}))
			require.NoError(t, err)
			begin := time.Now()
			var all sync.WaitGroup
			for i := range 300 {
				all.Go(func() {
					body := fmt.Sprintf(`{"model":"gpt-5","max_tokens":%d,"messages":[{"role":"user","content":"%s"}]}`, maxTokens, strings.Repeat("word ", 12+i*7%9))
					request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.openai.com/v1/chat/completions", strings.NewReader(body))
					require.NoError(t, err)
					response, err := transport.RoundTrip(request)
					require.NoError(t, err)
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				})
			}
			all.Wait()
			t.Log(maxTokens, time.Since(begin))
			t.Cleanup(func() { time.Sleep(3 * time.Second) }) // what nobody wanted goes back
			require.Less(t, time.Since(begin), bound)
		})
	}
}
