package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
)

// A call that panics, in the base transport or in a hook, is over.
func TestPanics(t *testing.T) {
	for name, build := range map[string]func() (*Transport, error){
		"base": func() (*Transport, error) {
			return New(answer(func(*http.Request, string) *http.Response { panic("base") }), OpenAI(), Limits{})
		},
		"hook": func() (*Transport, error) {
			return New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), OpenAI(), Limits{},
				WithOutbound(outbound.WithHooks(outbound.Hooks{Waited: func(*http.Request, time.Duration) { panic("hook") }})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			transport, err := build()
			require.NoError(t, err)
			for range 2 {
				require.PanicsWithValue(t, name, func() { post(transport, api, `{"model":"m"}`) })
			}
			transport.requireOver(t)
		})
	}
}

// A base transport may leave out the body, and name another request than the one it was given.
func TestOddResponses(t *testing.T) {
	for name, change := range map[string]func(*http.Response){
		"no body":         func(r *http.Response) { r.Body = nil },
		"another request": func(r *http.Response) { r.Request = httptest.NewRequest(http.MethodPost, api, nil) },
		"no request":      func(r *http.Response) { r.Request = nil },
	} {
		t.Run(name, func(t *testing.T) {
			transport, err := New(answer(func(r *http.Request, _ string) *http.Response {
				response := used(1, 1)
				change(response)
				return response
			}), OpenAI(), Limits{RequestsPerMinute: 10, TokensPerMinute: 1000})
			require.NoError(t, err)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(question))
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			if response.Body != nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			transport.requireOver(t)
		})
	}
}

// A refusal whose body never comes.
func TestRefusalBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, _ := io.Pipe()
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			r := says(429, "")
			r.Body = reader
			return r
		}), OpenAI(), Limits{RequestsPerMinute: 10})
		require.NoError(t, err)
		begin := time.Now()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(question))
		done := make(chan bool)
		go func() {
			response, _ := transport.RoundTrip(r)
			response.Body.Close()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Hour):
			reader.Close()
			<-done
			t.Error("hangs", time.Since(begin))
		}
	})
}
