package llm

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// FuzzStream: whatever comes, nothing breaks, a usage is within its bounds, and it is the same in
// whatever pieces it comes.
func FuzzStream(f *testing.F) {
	forms := []string{sse, doc, amazon}
	providers := []Provider{OpenAI(), Anthropic(), Gemini(), Bedrock()}
	for i, c := range responses {
		if len(c.text) < 2000 {
			f.Add([]byte(c.text), uint8(i), uint8(i/3), uint16(7*i))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, form, provider uint8, at uint16) {
		p, of := providers[int(provider)%len(providers)], forms[int(form)%len(forms)]
		whole, ignored := readIn(p, of, string(text))
		require.True(t, whole.input >= 0 && whole.output >= 0 && whole.input <= 2*maxTokens && whole.output <= 3*maxTokens, "%v", whole)
		end := min(int(at), len(text))
		again, ignoredAgain := readIn(p, of, string(text), end)
		require.Equal(t, whole, again)
		require.Equal(t, ignored, ignoredAgain)
	})
}

// FuzzDocument: of a document that encoding/json reads as well, the usage is the same.
func FuzzDocument(f *testing.F) {
	for _, c := range responses {
		if c.form == doc {
			f.Add([]byte(c.text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, ok := oracle(text)
		if !ok {
			return
		}
		got, _ := readIn(Anthropic(), doc, string(text))
		require.Equal(t, want, got)
	})
}

// others are those of usages of other forms, which oracle does not read.
var others = regexp.MustCompile(`"(prompt_tokens|completion_tokens|total_tokens|inputTokens|outputTokens|tokens|meta|response|delta|` +
	`x_groq|usageMetadata|(prompt_)?eval_count|amazon-bedrock-invocationMetrics)"`)

// oracle reads an Anthropic message with encoding/json. It does not judge what may be read in two
// ways: keys that are escaped, repeated or long, and numbers that are ignored.
func oracle(text []byte) (c count, ok bool) {
	if bytes.ContainsRune(text, '\\') || bytes.Count(text, []byte(`"usage"`)) > 1 || bytes.Count(text, []byte(`"input_tokens"`)) > 1 ||
		bytes.Count(text, []byte(`"output_tokens"`)) > 1 || bytes.Contains(text, []byte("cache")) || bytes.Contains(text, []byte(`"message"`)) || others.Match(text) {
		return c, false
	}
	var root map[string]json.RawMessage
	if json.Unmarshal(text, &root) != nil || root == nil {
		return c, false
	}
	var usage map[string]json.RawMessage
	if json.Unmarshal(root["usage"], &usage) != nil {
		return c, true
	}
	for name, to := range map[string]*int{"input_tokens": &c.input, "output_tokens": &c.output} {
		if raw, there := usage[name]; there {
			var n any
			if json.Unmarshal(raw, &n) != nil {
				return c, false
			}
			switch n := n.(type) {
			case float64:
				if n < 0 || n > maxTokens || n != math.Trunc(n) {
					return c, false
				}
				*to, c.known = int(n), true
			case nil, map[string]any, []any:
			default:
				return c, false
			}
		}
	}
	return c, true
}

// FuzzPrompt: whatever a request's body is, it is passed on as it was, and its estimate is no less
// than 0.
func FuzzPrompt(f *testing.F) {
	f.Add([]byte(question))
	f.Add([]byte(`{"model":"m","input":[[1,2,3],"abc"],"n":3,"best_of":9999999999999999999}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p prompt
		read, err := p.read(bytes.NewReader(text), true, true)
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, read))
		require.True(t, p.input >= 0 && p.output >= 0 && len(p.model) <= 3*len(text))
		if json.Valid(text) && len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			require.True(t, p.json)
		}
	})
}

// FuzzRename: a document has the other name in its field "model", and nothing else is changed.
func FuzzRename(f *testing.F) {
	f.Add([]byte(question), "swe")
	f.Add([]byte(` {"a":{"model":1}, "b":"x", "model" : "y" ,"c":["model"]} `), "a\"b\\")
	f.Add([]byte(`{"model":"ä\"b"}`), "")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		var p prompt
		_, err := p.read(bytes.NewReader(text), true, true)
		require.NoError(t, err)
		var before, after map[string]json.RawMessage
		if json.Unmarshal(text, &before) != nil || p.model == "" || bytes.Count(text, []byte("model")) > 2 || bytes.Contains(text, []byte(`\u`)) {
			return
		}
		require.NoError(t, json.Unmarshal(p.renamed(name), &after))
		before["model"] = reserve.Must(json.Marshal(name))
		require.Equal(t, before, after)
	})
}
