package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

type silent struct{}

func (silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// A base transport without a response and without an error is told of. Before, the transport panicked.
func TestNoResponse(t *testing.T) {
	transport := reserve.Must(New(silent{}, OpenAI(), Limits{}))
	r, _ := http.NewRequest(http.MethodPost, "http://a.test/v1/chat/completions", strings.NewReader("{}"))
	_, err := transport.RoundTrip(r)
	require.ErrorContains(t, err, "want a response or an error")
}

// answer is a base transport that answers as a function says. It reads the request's body.
type answer func(r *http.Request, body string) *http.Response

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	response := a(r, string(body))
	if response == nil {
		return nil, errors.New("no connection")
	}
	return response, nil
}

// says makes a response out of a status, a body and lines of headers.
func says(status int, body string, lines ...string) *http.Response {
	h := http.Header{"Content-Type": {doc}}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Set(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// used makes an OpenAI response that used so many tokens.
func used(input, output int, lines ...string) *http.Response {
	return says(200, fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, input, output, input+output), lines...)
}

// post makes a call, reads its response to the end, and returns its status; 0: there was none.
func post(t http.RoundTripper, address, body string, lines ...string) (int, error) {
	return postWithin(context.Background(), t, address, body, lines...)
}

func postWithin(ctx context.Context, t http.RoundTripper, address, body string, lines ...string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", doc)
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		r.Header.Set(name, value)
	}
	response, err := t.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

const api = "https://api.openai.com/v1/chat/completions"

// question is a call as many are.
var question = `{"model":"gpt-5","messages":[{"role":"user","content":"` + strings.Repeat("What is the weather? ", 20) + `"}],"max_tokens":200}`

// held returns what the limits of a key hold.
func (t *Transport) held(k kind) int {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	n := 0
	for _, a := range t.table.accounts {
		o := a.limiter(k).Snapshot()
		n += int(o.Capacity - o.Level)
	}
	return n
}

// requireOver requires that nothing is on its way.
func (t *Transport) requireOver(tb testing.TB) {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	for _, a := range t.table.accounts {
		require.Zero(tb, a.queued)
		require.Zero(tb, a.flight.Out())
	}
}

// Over ten thousand streamed calls, which end in all ways in which a stream ends, what is charged
// is what was used.
func TestChargedIsUsed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n, cut int
		fmt.Sscanf(r.URL.RawQuery, "%d-%d", &n, &cut)
		w.Header().Set("Content-Type", sse)
		fmt.Fprint(w, openAIChunk)
		w.(http.Flusher).Flush()
		if cut == 3 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "data: {\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", n, n/2, n+n/2)
		w.(http.Flusher).Flush()
		if cut == 4 {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	var estimated, came, settled atomic.Int64
	base := &http.Transport{MaxIdleConnsPerHost: 32}
	defer base.CloseIdleConnections()
	transport, err := New(base, OpenAI(), Limits{RequestsPerMinute: 1 << 30, TokensPerMinute: 1 << 30},
		WithOutbound(outbound.WithHooks(outbound.Hooks{Settled: func(_ *http.Request, limit string, before, after int) {
			estimated.Add(int64(before))
			came.Add(int64(after))
			settled.Add(1)
		}})))
	require.NoError(t, err)
	const calls = 10_000 / min(4, limitertest.Slower)
	body := `{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}],"max_tokens":50,"stream":true}`
	var usedInAll, kept atomic.Int64
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			for i := worker; i < calls; i += 32 {
				ctx, cancel := context.WithCancel(t.Context())
				cut := i % 5
				n := i%700 + 1
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/?%d-%d", server.URL, n, cut), strings.NewReader(body))
				response, err := transport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					cancel()
					continue
				}
				switch text := make([]byte, 0, 4096); cut {
				case 0: // reads to the end
					io.Copy(io.Discard, response.Body)
				case 3: // the connection breaks before the usage came
					io.Copy(io.Discard, response.Body)
					kept.Add(1)
					n = 0
				default: // closes, or is cancelled, when it has seen the usage
					for !bytes.Contains(text, []byte("total_tokens")) {
						k, err := response.Body.Read(text[len(text):cap(text)])
						if text = text[:len(text)+k]; err != nil && !bytes.Contains(text, []byte("total_tokens")) {
							t.Error(err)
							break
						}
					}
					if cut == 2 {
						cancel()
					}
				}
				usedInAll.Add(int64(n + n/2))
				response.Body.Close()
				cancel()
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool { return settled.Load() == calls }, 10*time.Second, time.Millisecond, "the cancelled ones, too")
	require.Equal(t, int64(transport.Ignored().Missing), kept.Load())
	transport.requireOver(t)
	// What is held is what was used, and what was seen of the streams that broke before they told it: their prompt's
	// estimate, corrected by the others, and the text of one event.
	require.Equal(t, came.Load(), int64(transport.held(tokens)))
	unknown := came.Load() - usedInAll.Load()
	require.Positive(t, unknown)
	require.LessOrEqual(t, unknown, kept.Load()*(700+20))
	require.Equal(t, calls, transport.held(requests))
}

// The body comes as it was sent, its first byte at once.
func TestBodyIsPassedOn(t *testing.T) {
	for _, c := range responses {
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			r := says(200, "", "Content-Type: "+c.form)
			r.Body = io.NopCloser(strings.NewReader(c.text))
			return r
		}), c.provider, Limits{RequestsPerMinute: 10, TokensPerMinute: 1e6})
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://a/model/m/converse", strings.NewReader(`{"model":"m"}`))
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, c.text, string(text), c.name)
	}
	reader, writer := io.Pipe()
	transport, err := New(answer(func(*http.Request, string) *http.Response {
		r := says(200, "", "Content-Type: "+sse)
		r.Body = reader
		return r
	}), OpenAI(), Limits{TokensPerMinute: 1e6, RequestsPerMinute: 10})
	require.NoError(t, err)
	response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(`{"model":"m"}`)))
	require.NoError(t, err)
	go writer.Write([]byte("d"))
	first := make([]byte, 100)
	n, err := response.Body.Read(first)
	require.NoError(t, err)
	require.Equal(t, "d", string(first[:n]))
	response.Body.Close()
}

// The request is sent as it was made, whether its body can be had again or not, and is not changed.
func TestRequestIsPassedOn(t *testing.T) {
	var got []string
	transport, err := New(answer(func(r *http.Request, body string) *http.Response {
		got = append(got, body)
		return used(1, 1)
	}), OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
	require.NoError(t, err)
	for _, body := range []string{question, "", "no JSON", "{", strings.Repeat("[", 100), `{"model":7,"max_tokens":-1,"n":"x"}`} {
		for _, again := range []bool{true, false} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(body))
			require.NoError(t, err)
			if !again {
				r.GetBody = nil
			}
			before := *r
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			response.Body.Close()
			require.Equal(t, body, got[len(got)-1])
			require.True(t, before.Body == r.Body && before.ContentLength == r.ContentLength && before.Context() == r.Context())
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, iotest.ErrReader(errors.New("no file")))
	_, err = transport.RoundTrip(r)
	require.EqualError(t, err, "no file")
}

// What is no call to a model is not limited: lists, counts of tokens, batches.
func TestOthersPass(t *testing.T) {
	n := 0
	transport, err := New(answer(func(*http.Request, string) *http.Response { n++; return says(200, "{}") }), Anthropic(), Limits{RequestsPerMinute: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/v1/models", nil)
		_, err := transport.RoundTrip(r)
		require.NoError(t, err)
		_, err = postWithin(ctx, transport, "https://a/v1/messages/count_tokens", `{"model":"m"}`)
		require.NoError(t, err)
		_, err = postWithin(ctx, transport, "https://a/v1/messages/batches", `{"requests":[]}`)
		require.NoError(t, err)
	}
	_, err = postWithin(ctx, transport, "https://a/v1/messages", `{"model":"m"}`)
	require.NoError(t, err)
	_, err = postWithin(ctx, transport, "https://a/v1/messages", `{"model":"m"}`)
	var wait *reserve.WaitError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, 10, n)
	require.Equal(t, uint64(9), transport.Ignored().Unpaced)
}

// A refusal of pace's is a response, if so wished, that the providers' clients do not ask again
// for.
func TestAnswerRefusals(t *testing.T) {
	for _, c := range []struct {
		provider Provider
		body     string
	}{
		{OpenAI(), `{"error":{"message":"pace: a wait of 1m0.25s for limit \"requests\" is longer than the longest allowed, 0s","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
		{Anthropic(), `{"type":"error","error":{"type":"rate_limit_error","message":"pace: a wait of 250ms for limit \"requests\" is longer than the longest allowed, 0s"}}`},
		{Gemini(), `{"error":{"code":429,"message":"pace: a wait of 1m0.25s for limit \"requests\" is longer than the longest allowed, 0s","status":"RESOURCE_EXHAUSTED"}}`},
		{Bedrock(), `{"message":"pace: a wait of 1m0.25s for limit \"requests\" is longer than the longest allowed, 0s"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, "{}") }), c.provider,
				Limits{RequestsPerMinute: 1}, AnswerRefusals(), WithOutbound(outbound.WithMaxWait(0)))
			require.NoError(t, err)
			address := "https://a/models/m:generateContent/model/m/converse"
			_, err = post(transport, address, `{"model":"m"}`)
			require.NoError(t, err)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"model":"m"}`))
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			require.Equal(t, 429, response.StatusCode)
			require.Equal(t, "false", response.Header.Get("x-should-retry"))
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(body))
		})
	}
}

// A request that is larger than the limit goes when the limit is full, and a server's word that one is too large stops
// no call.
func TestLargerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var went []time.Duration
		transport, err := New(answer(func(_ *http.Request, body string) *http.Response {
			went = append(went, time.Since(begin).Round(time.Second))
			if strings.Contains(body, "9999") {
				return says(429, `{"error":{"message":"Request too large for gpt-4"}}`, "x-ratelimit-limit-tokens: 1000", "x-ratelimit-remaining-tokens: 900", "x-ratelimit-reset-tokens: 6s")
			}
			return used(0, 500)
		}), OpenAI(), Limits{RequestsPerMinute: 100, TokensPerMinute: 1000}, WithMargin(0))
		require.NoError(t, err)
		for _, most := range []int{500, 5000, 500, 500, 9999, 500} {
			_, err := post(transport, api, fmt.Sprintf(`{"model":"m","max_tokens":%d}`, most))
			require.NoError(t, err)
		}
		s := time.Second
		require.Equal(t, []time.Duration{0, 60 * s, 60 * s, 120 * s, 180 * s, 180 * s}, went)
	})
}

// A call that its provider refuses whenever it comes fails at once, and holds up no other: if a response has told the
// limit, or with the option.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		name   string
		given  Limits
		header string
		opts   []Option
		fails  bool
	}{
		{"told", Limits{}, "x-ratelimit-limit-tokens: 1000", nil, true},
		{"given", Limits{RequestsPerMinute: 100, TokensPerMinute: 1000}, "a: b", nil, false},
		{"given, with the option", Limits{RequestsPerMinute: 100, TokensPerMinute: 1000}, "a: b", []Option{RefuseTooLarge()}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport, err := New(answer(func(*http.Request, string) *http.Response { return used(0, 500, c.header) }), OpenAI(), c.given, append(c.opts, AnswerRefusals())...)
			require.NoError(t, err)
			begin := time.Now()
			_, err = post(transport, api, `{"model":"m","max_tokens":500}`)
			require.NoError(t, err)
			status, err := post(transport, api, `{"model":"m","max_tokens":5000}`)
			require.NoError(t, err)
			if !c.fails {
				require.Equal(t, 200, status)
				return
			}
			require.Equal(t, 429, status, c.name)
			require.Zero(t, time.Since(begin))
			err = transport.largest(t, `{"model":"m","max_tokens":5000}`)
			require.EqualError(t, err, "llm: a call of at least 5000 tokens is larger than the limit of tokens, 1000")
			_, err = post(transport, api, `{"model":"m","max_tokens":400}`)
			require.NoError(t, err)
			require.Zero(t, time.Since(begin), "others go")
		})
	}
}

// A call that is larger than the limit which its own refusal tells fails at once. It has used nothing, and others go.
func TestTooLargeForItsRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		base := answer(func(_ *http.Request, body string) *http.Response {
			if n++; strings.Contains(body, "5000") {
				return says(429, `{"error":{"code":"rate_limit_exceeded"}}`, "Retry-After: 60", "x-ratelimit-limit-tokens: 1000", "x-ratelimit-remaining-tokens: 1000", "x-ratelimit-reset-tokens: 1s")
			}
			return used(0, 500)
		})
		for name, transport := range map[string]http.RoundTripper{
			"alone":          reserve.Must(New(base, OpenAI(), Limits{}, WithOutbound(outbound.WithRetries(3)))),
			"one of several": reserve.Must(NewDeployments(base, []Deployment{{Provider: OpenAI(), Base: &url.URL{Scheme: "https", Host: "a", Path: "/v1"}}}, WithOutbound(outbound.WithRetries(3)))),
		} {
			n = 0
			begin := time.Now()
			_, err := post(transport, api, `{"model":"m","max_tokens":5000}`)
			var large *TooLargeError
			require.ErrorAs(t, err, &large, name)
			require.Equal(t, 1000, large.Most)
			require.Zero(t, time.Since(begin), name)
			require.Equal(t, 1, n)
			_, err = post(transport, api, `{"model":"m","max_tokens":500}`)
			require.NoError(t, err)
			require.Equal(t, time.Minute, time.Since(begin), "the server's word holds")
		}
	})
}

// A call that waits for the first answer, and is larger than the limit which that tells, is not sent.
func TestTooLargeForTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			sent++
			time.Sleep(time.Second)
			return says(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "x-ratelimit-limit-requests: 100", "x-ratelimit-limit-tokens: 1000")
		}), OpenAI(), Limits{})
		require.NoError(t, err)
		go post(transport, api, `{"model":"m","max_tokens":5}`)
		synctest.Wait()
		transport.largest(t, `{"model":"m","max_tokens":5000}`)
		require.Equal(t, 1, sent)
	})
}

// largest returns the error of a call without AnswerRefusals.
func (t *Transport) largest(tb testing.TB, body string) error {
	t.answer = false
	_, err := post(t, api, body)
	var large *TooLargeError
	require.ErrorAs(tb, err, &large)
	return err
}

// Bodies of refusals are drained, so that their connections are used again, even if the caller does not read them.
func TestRefusalsKeepConnections(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", "0") // else the third in a row would have the next one wait
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":{"message":"`+strings.Repeat("slow down ", 2000)+`"}}`)
	}))
	var connections atomic.Int64
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	transport, err := New(base, OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
	require.NoError(t, err)
	for range 8 {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"model":"m"}`))
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, 429, response.StatusCode)
		response.Body.Close()
	}
	require.LessOrEqual(t, connections.Load(), int64(2))
	require.Zero(t, transport.held(tokens), "a refusal has used nothing")
	require.Equal(t, 8, transport.held(requests))
	transport.requireOver(t)
}

// A call without a response, or with an error of the caller's, is over.
func TestFailures(t *testing.T) {
	status := 0
	transport, err := New(answer(func(*http.Request, string) *http.Response {
		if status == 0 {
			return nil
		}
		return says(status, `{"error":{}}`)
	}), OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
	require.NoError(t, err)
	for _, c := range []struct{ status, held int }{{0, 40}, {400, 0}, {404, 0}, {500, 40}} {
		status = c.status
		before := transport.heldOrNone(tokens)
		post(transport, api, `{"model":"m","max_tokens":40}`)
		require.Equal(t, c.held, transport.heldOrNone(tokens)-before, c.status)
		transport.requireOver(t)
	}
}

func (t *Transport) heldOrNone(k kind) int {
	if len(t.table.accounts) == 0 {
		return 0
	}
	return t.held(k)
}

// A body that the caller decodes itself keeps its estimate.
func TestEncoded(t *testing.T) {
	transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, "\x1f\x8b", "Content-Encoding: gzip") }),
		OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
	require.NoError(t, err)
	_, err = post(transport, api, `{"model":"m","max_tokens":40}`)
	require.NoError(t, err)
	require.Equal(t, Ignored{Encoded: 1, Missing: 1}, transport.Ignored())
	require.Equal(t, 40, transport.held(tokens))
}

// What makes no sense is refused by New.
func TestBadSettings(t *testing.T) {
	for text, build := range map[string]func() error{
		"llm: the provider is <nil>; want OpenAI(), AzureOpenAI(), Anthropic(), Gemini() or Bedrock()": func() error { _, err := New(nil, Provider{}, Limits{}); return err },
		"llm: the limit of tokens is -1; want 0 or more":                                               func() error { _, err := New(nil, OpenAI(), Limits{TokensPerMinute: -1}); return err },
		"llm: the limit of requests is -2; want 0 or more": func() error {
			_, err := New(nil, OpenAI(), Limits{}, WithModel("m", Limits{RequestsPerMinute: -2}))
			return err
		},
		"llm: WithMaxKeys is 0; want at least 1":                              func() error { _, err := New(nil, OpenAI(), Limits{}, WithMaxKeys(0)); return err },
		"llm: WithRequestWindow is 0s; want more than 0 and at most a minute": func() error { _, err := New(nil, OpenAI(), Limits{}, WithRequestWindow(0)); return err },
		"llm: WithKey is <nil>; want a function":                              func() error { _, err := New(nil, OpenAI(), Limits{}, WithKey(nil)); return err },
		"llm: WithBucket is 1ns; want 0, or from a second to an hour":         func() error { _, err := New(nil, OpenAI(), Limits{}, WithBucket(1)); return err },
		"llm: WithEstimate is <nil>; want a function":                         func() error { _, err := New(nil, OpenAI(), Limits{}, WithEstimate(nil)); return err },
		"llm: WithClock is <nil>; want a clock":                               func() error { _, err := New(nil, OpenAI(), Limits{}, WithClock(nil)); return err },
	} {
		err := build()
		require.EqualError(t, err, text)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value)
	}
}

// Limiters of the user's own take the place of windows.
func TestWithLimiters(t *testing.T) {
	shared := reserve.Must(pace.NewTokenBucket(1, 1000))
	var asked []string
	transport, err := New(answer(func(*http.Request, string) *http.Response { return used(10, 20) }), OpenAI(), Limits{RequestsPerMinute: 5},
		WithLimiters(func(limit string, key Key) reserve.Reserver {
			asked = append(asked, limit)
			require.Equal(t, "api.openai.com/m/"+fmt.Sprintf("%016x", key.Credential), key.String())
			if limit == "tokens" {
				return shared
			}
			return nil
		}))
	require.NoError(t, err)
	for range 2 {
		_, err = post(transport, api, `{"model":"m","max_tokens":40}`, "Authorization: Bearer sk-1")
		require.NoError(t, err)
	}
	require.Equal(t, names[:calls], asked)
	require.InDelta(t, 1000-2*30, shared.Stored(), 5)
}
