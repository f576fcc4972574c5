// Package tokens measures how far pace's estimate of a prompt is from what OpenAI's tokenizer o200k_base says.
package tokens

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/llm"
)

//go:embed corpus
var corpus embed.FS

// A text is one of the corpus: of a kind, and of a language if it is prose.
type text struct{ name, content string }

// texts returns eight kinds of text and more, and prose in five languages.
func texts(t testing.TB) (all []text) {
	files, err := corpus.ReadDir("corpus")
	require.NoError(t, err)
	for _, f := range files {
		content, err := corpus.ReadFile(path.Join("corpus", f.Name()))
		require.NoError(t, err)
		all = append(all, text{strings.TrimSuffix(f.Name(), ".txt"), string(content)})
	}
	random := rand.New(rand.NewPCG(1, 2))
	bytes := make([]byte, 10_000)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	var csv, numbers, log strings.Builder
	levels := []string{"INFO", "WARN", "ERROR", "DEBUG"}
	paths := []string{"/api/v1/users", "/healthz", "/orders/checkout", "/static/app.js"}
	type record struct {
		ID     int      `json:"id"`
		Name   string   `json:"name"`
		Tags   []string `json:"tags"`
		Score  float64  `json:"score"`
		Active bool     `json:"active"`
		Street string   `json:"street"`
	}
	var list []record
	for i := range 300 {
		fmt.Fprintf(&csv, "%d,%.2f,%d,2026-%02d-%02d,%.4f\n", i, random.Float64()*1000, random.IntN(100_000),
			1+random.IntN(12), 1+random.IntN(28), random.Float64())
		fmt.Fprintf(&numbers, "%d ", random.IntN(1_000_000))
		fmt.Fprintf(&log, "2026-11-22T10:%02d:%02d.%03dZ %s [worker-%d] request_id=%016x method=GET path=%s/%d "+
			"status=%d duration=%dms\n",
			random.IntN(60), random.IntN(60), random.IntN(1000), levels[random.IntN(4)], random.IntN(16), random.Uint64(),
			paths[random.IntN(4)], random.IntN(9999), 200+100*random.IntN(4), random.IntN(900))
		name, tags := fmt.Sprint("user", random.IntN(1000)), []string{"red", "large"}
		list = append(list, record{i, name, tags, random.Float64(), i%2 == 0, "Main Street"})
	}
	minified, err := json.Marshal(list)
	require.NoError(t, err)
	indented, err := json.MarshalIndent(list, "", "  ")
	require.NoError(t, err)
	return append(all, text{"csv", csv.String()}, text{"numbers", numbers.String()}, text{"log", log.String()},
		text{"json minified", string(minified)}, text{"json indented", string(indented)},
		text{"hex", hex.EncodeToString(bytes)}, text{"base64", base64.StdEncoding.EncodeToString(bytes)})
}

// A recorder is a limiter that notes what it is asked for, and refuses.
type recorder struct{ asked int }

var errNoted = errors.New("noted")

func (r *recorder) ReserveWithin(_ context.Context, n int, _ time.Duration) (reserve.Reservation, error) {
	r.asked = n
	return reserve.Reservation{}, errNoted
}

// estimate returns pace's estimate of a prompt, uncorrected.
func estimate(t testing.TB, prompt string) int {
	asked := &recorder{}
	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 1}, llm.WithSettling(false),
		llm.WithLimiters(func(limit string, _ llm.Key) reserve.Reserver {
			if limit == "input-tokens" {
				return asked
			}
			return nil
		}))
	require.NoError(t, err)
	body, err := json.Marshal(map[string]any{"model": "m", "input": prompt})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://a/v1/responses", strings.NewReader(string(body)))
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.ErrorIs(t, err, errNoted)
	return asked.asked
}

// The estimate is within 30 % of o200k_base for each kind of text.
func TestEstimates(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	require.NoError(t, err)
	for _, text := range texts(t) {
		ids, _, err := codec.Encode(text.content)
		require.NoError(t, err)
		off := 100 * (float64(estimate(t, text.content))/float64(len(ids)) - 1)
		quarter := 100 * (float64(len(text.content))/4/float64(len(ids)) - 1)
		t.Logf("%-14s %6d tokens: %+4.0f %%, a quarter of the bytes %+4.0f %%", text.name, len(ids), off, quarter)
		require.InDelta(t, 0, off, 30, text.name)
	}
}
