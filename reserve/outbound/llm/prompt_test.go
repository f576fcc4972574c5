package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A form with a file costs a request, whatever the file holds and however large it is.
func TestForms(t *testing.T) {
	for name, file := range map[string][]byte{
		"zeros": make([]byte, 1000), "text": []byte("Hello, world."), "empty": nil, "brackets": []byte("[]{}"), "large": make([]byte, 9<<20),
	} {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprint(name, again), func(t *testing.T) {
				transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, `{"text":"Hi"}`) }), OpenAI(),
					Limits{RequestsPerMinute: 10, TokensPerMinute: 1000})
				require.NoError(t, err)
				var body bytes.Buffer
				form := multipart.NewWriter(&body)
				require.NoError(t, form.WriteField("model", "whisper-1"))
				part, err := form.CreateFormFile("file", "a.wav")
				require.NoError(t, err)
				part.Write(file)
				form.Close()
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a/v1/audio/transcriptions", &body)
				r.Header.Set("Content-Type", form.FormDataContentType())
				if !again {
					r.GetBody, r.ContentLength = nil, -1
				}
				response, err := transport.RoundTrip(r)
				require.NoError(t, err)
				response.Body.Close()
				require.Equal(t, 1, transport.heldOrNone(requests))
				require.Zero(t, transport.heldOrNone(tokens))
			})
		}
	}
}

// A request's body that blocks ends with the request's context.
func TestBodyBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), OpenAI(), Limits{RequestsPerMinute: 10})
		require.NoError(t, err)
		reader, writer := io.Pipe()
		go writer.Write([]byte(`{"model":`))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("gone")) })
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, api, reader)
		_, err = transport.RoundTrip(r)
		require.EqualError(t, err, "gone")
		_, err = writer.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe, "the body is closed")
	})
}

// A function that estimates gets a whole body, or none.
func TestEstimateOfLargeBodies(t *testing.T) {
	large := `{"model":"m","messages":[{"content":"` + strings.Repeat("a b ", 3<<20) + `"}]}`
	for _, again := range []bool{true, false} {
		asked := 0
		transport, err := New(answer(func(_ *http.Request, body string) *http.Response {
			require.True(t, large == body)
			return used(1, 1)
		}), OpenAI(), Limits{RequestsPerMinute: 10, TokensPerMinute: 1e6}, WithEstimate(func(_ *http.Request, body []byte) (int, int) {
			asked++
			require.Nil(t, body)
			return 1, 1
		}))
		require.NoError(t, err)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(large))
		if !again {
			r.GetBody = nil
		}
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, 1, asked)
	}
}

// A model's name may be written in many ways.
func TestModelsWithEscapes(t *testing.T) {
	for _, name := range []string{`m\u0065ta\/llama`, `meta\/llama`, `\u006d\u0065\u0074\u0061/llama`} {
		require.Equal(t, "meta/llama", keyOf(t, OpenAI(), api, `{"model":"`+name+`"}`).Model)
	}
	require.Equal(t, `meta\x`, keyOf(t, OpenAI(), api, `{"model":"meta\x"}`).Model, "no JSON")
}
