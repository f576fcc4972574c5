package llm

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// A situation is a backend with one program at it, that makes its calls as an SDK does, with two retries.
type situation struct {
	name     string
	backend  *backend
	calls    crowd
	provider Provider
	limits   Limits
	opts     []Option
	// Of the calls at most so many fail, of what is sent at most such a share is refused, and the calls take at most so
	// many times as long as the quota needs: not judged, if 0.
	failed  int
	refused float64
	over    float64
}

// needs returns how long the quota needs for the calls: a minute's worth goes at once. Then a call takes its time.
func (s *situation) needs() time.Duration {
	total := 0
	for n := range s.calls.n {
		size := s.calls.size(n)
		if s.backend.counts != nil {
			total += s.backend.counts(size)
		} else {
			total += size.in + size.out
		}
	}
	minutes := 0
	if s.backend.tpm > 0 {
		minutes = (total - 1) / s.backend.tpm
	}
	if s.backend.rpm > 0 {
		minutes = max(minutes, (s.calls.n-1)/s.backend.rpm)
	}
	return time.Duration(minutes)*time.Minute + s.backend.takes + time.Second
}

// same is calls of one size.
func same(size sizes) func(int) sizes { return func(int) sizes { return size } }

// between is calls whose sizes lie between two.
func between(from, to sizes) func(int) sizes {
	return func(n int) sizes {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		part := func(a, b int) int { return a + r.IntN(max(1, b-a+1)) }
		return sizes{part(from.in, to.in), part(from.cached, to.cached), part(from.out, to.out), part(from.most, to.most)}
	}
}

// prompted is a text of so many tokens.
func prompted(tokens int) string { return strings.Repeat("abcd ", tokens*4/5) }

func chatOf(more string) func(int, sizes) string {
	return func(_ int, s sizes) string {
		return fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"content":"%s"}]%s}`, s.most, prompted(s.in), more)
	}
}

// claude is the usage as Anthropic tells it.
func claude(s sizes) string {
	return fmt.Sprintf(`{"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}}`, s.in-s.cached, s.cached, s.out)
}

// openRouter says in milliseconds since 1970 when there is room again.
func openRouter(b *backend, h http.Header, now time.Time, refused bool) {
	if refused && len(b.log) > 0 {
		h.Set("X-RateLimit-Limit", strconv.Itoa(b.rpm))
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset", strconv.FormatInt(b.log[0].at.Add(time.Minute).UnixMilli(), 10))
	}
}

func throttling(h http.Header) (int, string) {
	h.Set("X-Amzn-Errortype", "ThrottlingException")
	return 429, `{"message":"Too many requests, please wait before trying again."}`
}

// groqs are headers of requests a day and tokens a minute.
func groqs(b *backend, h http.Header, now time.Time, refused bool) {
	rpm := b.rpm
	b.rpm = 0
	openAIs(b, h, now, refused)
	b.rpm = rpm
}

func bedrockUsage(s sizes) string {
	return fmt.Sprintf(`{"usage":{"inputTokens":%d,"outputTokens":%d}}`, s.in, s.out)
}

func pdf(tokens int) string {
	return base64.StdEncoding.EncodeToString(append([]byte("%PDF-1.7"), make([]byte, tokens*bytesPerPDF)...))
}

// filesOf has a PDF of 60,000 tokens in each nth call, and a text in others.
func filesOf(nth int) crowd {
	file := pdf(60_000)
	return crowd{n: 200, every: 100 * time.Millisecond, size: func(n int) sizes {
		if n%nth == 0 {
			return sizes{in: 60_000, most: 1}
		}
		return sizes{in: 1000, most: 1}
	}, ask: func(n int, s sizes) string {
		if n%nth == 0 {
			return `{"model":"m","max_tokens":1,"messages":[{"content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + file + `"}}]}]}`
		}
		return chatOf("")(n, s)
	}}
}

// unknownFiles are of a type whose tokens nobody can estimate.
func unknownFiles() crowd {
	file := base64.StdEncoding.EncodeToString(append([]byte("PK\x03\x04"), make([]byte, 1<<12)...))
	return crowd{n: 200, every: 100 * time.Millisecond, size: same(sizes{in: 30_000, most: 1}), ask: func(int, sizes) string {
		return `{"model":"m","max_tokens":1,"messages":[{"content":[{"type":"document","source":{"type":"base64","data":"` + file + `"}}]}]}`
	}}
}

// expecting is an estimate of a user who knows the outputs better than max_tokens says.
func expecting(output int) Option {
	return WithEstimate(func(_ *http.Request, body []byte) (int, int) { return len(body) / 4, output })
}

func situations() []situation {
	reasoning := crowd{n: 600, ask: chatOf(""), size: between(
		sizes{in: 500, out: 500, most: 32_000}, sizes{in: 500, out: 3500, most: 32_000})}
	alias := func(n int, s sizes) string {
		return strings.Replace(chatOf("")(n, s), `"m"`, `"`+[]string{"gpt-4o", "gpt-4o-2024-08-06", "ft:gpt-4o:a", "gpt-4o-latest"}[n%4]+`"`, 1)
	}
	cached := crowd{n: 100, size: same(sizes{in: 20_500, cached: 20_000, most: 10}), ask: chatOf(""), address: "https://a/v1/messages"}
	fresh := func(s sizes) int { return s.in - s.cached }
	gemini := crowd{n: 60, size: same(sizes{in: 1, most: 1})}
	bedrock := crowd{n: 300, size: same(sizes{in: 1000, most: 1}), address: "https://bedrock/model/m/converse"}
	small := crowd{n: 300, size: same(sizes{in: 1000, most: 1})}
	mistral := func(limit, left string) func(b *backend, h http.Header, now time.Time, refused bool) {
		return func(b *backend, h http.Header, now time.Time, _ bool) {
			_, tokens := b.left(now)
			h.Set(limit, strconv.Itoa(b.tpm))
			h.Set(left, strconv.Itoa(max(0, tokens)))
		}
	}
	tiers := func(after time.Duration, tpm int) func(*backend, time.Duration) {
		return func(b *backend, now time.Duration) {
			if now >= after {
				b.tpm = tpm
			}
		}
	}
	down := func(from, to time.Duration, status int) func(time.Duration) int {
		return func(now time.Duration) int {
			if now >= from && now < to {
				return status
			}
			return 0
		}
	}
	second := time.Second
	return []situation{
		{
			"reasoning, the server holds max_tokens", &backend{tpm: 500_000, rpm: 1e6, holds: true, takes: 20 * second, says: openAIs},
			reasoning, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: 500_000}, nil, 0, 0.001, 12,
		},
		{
			"reasoning, the server counts what is used", &backend{tpm: 500_000, rpm: 1e6, takes: 20 * second, says: openAIs},
			reasoning, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: 500_000}, []Option{expecting(2000)}, 0, 0.03, 1.8,
		},
		{
			"Anthropic's cache", &backend{tpm: 50_000, counts: fresh, replies: claude, takes: second},
			cached, Anthropic(), Limits{InputTokensPerMinute: 50_000}, []Option{WithBucket(0)}, 0, 0.001, 32,
		},
		{
			"cache reads that count", &backend{tpm: 1_000_000, replies: claude, takes: second},
			crowd{n: 300, size: cached.size, ask: cached.ask}, Anthropic(), Limits{InputTokensPerMinute: 1_000_000}, []Option{CacheReadsCount(), WithBucket(0)}, 0, 0.001, 1.1,
		},
		{
			"embeddings of 1 to 100 texts", &backend{tpm: 100_000, replies: func(s sizes) string {
				return fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"total_tokens":%d}}`, s.in, s.in)
			}},
			crowd{n: 300, size: between(sizes{in: 20}, sizes{in: 2000}), address: "https://a/v1/embeddings", ask: func(_ int, s sizes) string { return `{"model":"m","input":["` + prompted(s.in) + `"]}` }},
			OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: 100_000}, nil, 0, 0.001, 1.1,
		},
		{"a PDF in each fifth call", &backend{tpm: 450_000, replies: claude}, filesOf(5), Anthropic(), Limits{InputTokensPerMinute: 450_000}, []Option{WithBucket(0)}, 0, 0.03, 1.3},
		{"a PDF in each second call", &backend{tpm: 450_000, replies: claude}, filesOf(2), Anthropic(), Limits{InputTokensPerMinute: 450_000}, []Option{WithBucket(0)}, 0, 0.03, 1.3},
		{"a PDF in each call", &backend{tpm: 450_000, replies: claude}, filesOf(1), Anthropic(), Limits{InputTokensPerMinute: 450_000}, []Option{WithBucket(0)}, 0, 0.03, 1.3},
		{"files of an unknown type", &backend{tpm: 450_000, replies: claude, takes: 5 * second}, unknownFiles(), Anthropic(), Limits{InputTokensPerMinute: 450_000}, []Option{WithBucket(0)}, 0, 0.03, 1.3},
		{"Gemini, nothing given", &backend{rpm: 15, says: soon, takes: second}, gemini, Gemini(), Limits{}, nil, 1, 0.46, 1.1},
		{"Gemini, given", &backend{rpm: 15, says: soon, takes: second}, gemini, Gemini(), Limits{RequestsPerMinute: 15}, nil, 0, 0.001, 1.1},
		{
			"Bedrock, given", &backend{tpm: 60_000, throttle: throttling, replies: bedrockUsage}, bedrock,
			Bedrock(), Limits{TokensPerMinute: 60_000}, nil, 0, 0.001, 1.3,
		},
		{
			"Bedrock, given twice too high", &backend{tpm: 60_000, throttle: throttling, replies: bedrockUsage}, bedrock,
			Bedrock(), Limits{TokensPerMinute: 120_000}, nil, 6, 0.35, 1.3,
		},
		{"vLLM, eight at a time", &backend{inFlight: 8, takes: 2 * second}, crowd{n: 200, size: same(sizes{in: 1, most: 1})}, OpenAI(), Limits{}, nil, 10, 0.52, 0},
		{"eight streams at a time", &backend{inFlight: 8, takes: 2 * second, streams: true}, crowd{n: 200, size: same(sizes{in: 1, most: 1})}, OpenAI(), Limits{}, nil, 10, 0.52, 0},
		{"OpenRouter", &backend{rpm: 20, says: openRouter, takes: second}, crowd{n: 100, size: same(sizes{in: 1, most: 1})}, OpenAI(), Limits{}, nil, 2, 0.52, 1.1},
		{
			"Mistral, nothing given", &backend{tpm: 60_000, says: mistral("X-Ratelimit-Limit-Tokens-Minute", "X-Ratelimit-Remaining-Tokens-Minute"), takes: second},
			small, OpenAI(), Limits{}, nil, 0, 0.05, 1.3,
		},
		{"Together, nothing given, bare refusals", &backend{rpm: 60, takes: second}, small, OpenAI(), Limits{}, nil, 15, 0.6, 0},
		{"OpenAI's headers", &backend{rpm: 1000, tpm: 100_000, says: openAIs}, small, OpenAI(), Limits{}, nil, 0, 0.001, 1.6},
		{"Groq's headers", &backend{rpm: 1000, tpm: 100_000, says: groqs}, small, OpenAI(), Limits{}, nil, 0, 0.001, 1.6},
		{
			"names of one model, joined", &backend{tpm: 100_000, says: openAIs}, crowd{n: 400, size: small.size, ask: alias}, OpenAI(),
			Limits{TokensPerMinute: 100_000}, []Option{WithKey(func(_ *http.Request, key Key) Key { key.Model = "gpt-4o"; return key })}, 0, 0.001, 1.4,
		},
		{
			"names of one model, apart", &backend{tpm: 100_000, says: openAIs}, crowd{n: 400, size: small.size, ask: alias}, OpenAI(),
			Limits{TokensPerMinute: 100_000}, nil, 20, 0.4, 2.8,
		},
		{"a tier up, learned", &backend{tpm: 60_000, says: openAIs, changes: tiers(90*second, 300_000)}, crowd{n: 600, size: small.size}, OpenAI(), Limits{}, nil, 0, 0.01, 0},
		{"a tier down, learned", &backend{tpm: 120_000, says: openAIs, changes: tiers(90*second, 60_000)}, crowd{n: 600, size: small.size}, OpenAI(), Limits{}, nil, 0, 0.1, 0},
		{"a tier down, given", &backend{tpm: 120_000, says: openAIs, changes: tiers(90*second, 60_000)}, crowd{n: 600, size: small.size}, OpenAI(), Limits{TokensPerMinute: 120_000}, nil, 0, 0.07, 0},
		{
			"Anthropic's 529 for a minute", &backend{tpm: 450_000, replies: claude, takes: second, refuses: down(30*second, 90*second, 529)},
			crowd{n: 300, every: 400 * time.Millisecond, size: small.size, address: "https://a/v1/messages"},
			Anthropic(), Limits{InputTokensPerMinute: 450_000}, []Option{WithBucket(0)}, 6, 0.08, 0,
		},
		{
			"half of the streams left after 2 s", &backend{tpm: 400_000, holds: true, takes: 10 * second, streams: true},
			crowd{n: 400, size: same(sizes{in: 1000, out: 1000, most: 4000}), ask: chatOf(`,"stream":true`), leaves: func(n int) time.Duration { return time.Duration(n%2) * 2 * second }},
			OpenAI(), Limits{TokensPerMinute: 400_000}, nil, 0, 0.001, 1.8,
		},
	}
}

// What language models' servers do to a program, judged before the program knows them.
func TestSituations(t *testing.T) {
	for _, s := range situations() {
		if limitertest.Slower > 1 && strings.HasPrefix(s.name, "a PDF") {
			continue // large texts
		}
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := s.backend
				b.flight = 20 * time.Millisecond
				s.calls.name = s.name
				s.calls.through = transportTo(t, b, s.provider, s.limits, s.opts...)
				best := s.needs()
				time.Sleep(26 * 365 * 24 * time.Hour) // the bubble begins in 2000, when times in ms had fewer digits
				r := b.run(t, s.calls)[0]
				over := r.took.Seconds() / best.Seconds()
				share := float64(r.refused) / math.Max(1, float64(r.sent))
				t.Logf("%-42s %3d of %3d fail, %4.1f %% refused, x%.2f", s.name, r.failed, r.calls, 100*share, over)
				require.LessOrEqual(t, r.failed, s.failed)
				require.LessOrEqual(t, share, s.refused)
				if s.over > 0 {
					require.LessOrEqual(t, over, s.over)
				}
			})
		})
	}
}
