package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// measured returns the estimate of a text that a request's body holds, written in pieces of n bytes.
func measured(t *testing.T, text string, n int) int {
	body, err := json.Marshal(map[string]string{"input": text})
	require.NoError(t, err)
	r := promptReader{}
	r.scan.to, r.scan.form = &r, promptForm
	for len(body) > 0 {
		n := min(n, len(body))
		r.scan.write(body[:n])
		body = body[n:]
	}
	return int(r.scan.size.milli+999) / 1000
}

// The estimate of short texts, beside what o200k_base says. bench/sdk/llm/tokens measures whole texts.
func TestTokens(t *testing.T) {
	for text, real := range map[string]int{
		"": 0, "abc": 1, "The quick brown fox jumps over the lazy dog.": 10, "HTTPRequest": 1, "12345": 2, "a = 12345;\n": 6,
		"3fa9c17be20d4586": 10, "    \n\n": 1, "Straße": 2, "привет": 2, "語語": 2, `{"a":"b"}`: 5,
	} {
		require.InDelta(t, real, measured(t, text, 1<<20), 4, text)
	}
}

// It does not depend on the pieces in which a text comes, nor on whether its characters are escaped.
func TestTokensInPieces(t *testing.T) {
	text := strings.Repeat("Größe: 12345 \"<tag>\" слово 語 \t camelCase_word HTTP\n", 1000)
	want := measured(t, text, 1<<20)
	for _, n := range []int{1, 7, 4096} {
		require.InEpsilon(t, want, measured(t, text, n), 0.001)
	}
	escaped := strings.NewReplacer("ö", `\u00f6`, "ß", `\u00DF`, "語", `\u8a9e`).Replace("Größe 語 Größe")
	var plain, coded meter
	plain.write([]byte("Größe 語 Größe"))
	coded.write([]byte(escaped))
	require.Equal(t, plain.milli, coded.milli)
}
