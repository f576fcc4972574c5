package llm

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readIn reads a response in pieces that end at the given places, and returns its usage and what
// was ignored.
func readIn(p Provider, contentType, text string, ends ...int) (count, Ignored) {
	var ignored ignored
	var c counter
	c.begin(&ignored)
	r := &http.Response{Header: http.Header{"Content-Type": {contentType}}}
	body := bodyOf(r, &c)
	at := 0
	for _, end := range append(ends, len(text)) {
		body.write([]byte(text[at:end]))
		at = end
	}
	body.end()
	return c.count, ignored.read()
}

const (
	sse    = "text/event-stream; charset=utf-8"
	doc    = "application/json"
	amazon = "application/vnd.amazon.eventstream"
)

// frame is one of AWS's event stream.
func frame(event, payload string) string {
	header := "\x0b:event-type\x07" + string(binary.BigEndian.AppendUint16(nil, uint16(len(event)))) + event
	b := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(header)+len(payload)+trailer))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, header+payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// chunk is a frame of InvokeModelWithResponseStream.
func chunk(payload string) string {
	return frame("chunk", fmt.Sprintf(`{"bytes":"%s","p":"abcdefgh"}`, base64.StdEncoding.EncodeToString([]byte(payload))))
}

const openAIChunk = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"{\"usage\": {\"prompt_tokens\": 99}}"}}],"usage":null}` + "\n\n"

// What each provider's responses say of the usage, as its documents have them: the same in whatever
// pieces they come.
var responses = []struct {
	name     string
	provider Provider
	form     string
	text     string
	want     count
	ignored  Ignored
}{
	{"chat completion", OpenAI(), doc, `{"id":"c","choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":99}"}}],` +
		`"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":7}}}`,
		count{input: 19, output: 10, cached: 5, known: true}, Ignored{}},
	{"embeddings", OpenAI(), doc, `{"object":"list","data":[{"embedding":[0.1,-2e-3,3]}],"model":"e","usage":{"prompt_tokens":8,"total_tokens":8}}`, count{input: 8, output: 0, known: true}, Ignored{}},
	{"response", OpenAI(), doc, `{"id":"r","usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":0},"output_tokens":87,"total_tokens":123},"metadata":{}}`, count{input: 36, output: 87, known: true}, Ignored{}},
	{"only a total", OpenAI(), doc, `{"usage":{"total_tokens":8}}`, count{input: 8, output: 0, known: true}, Ignored{}},
	{"chat stream", OpenAI(), sse, openAIChunk + `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}` + "\n\ndata: [DONE]\n\n",
		count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat stream, CRLF, no space, comments", OpenAI(), sse, ": OPENROUTER PROCESSING\r\n\r\ndata:{\"usage\":{\"prompt_tokens\":7,\r\ndata: \"completion_tokens\":5}}\r\n\r\n",
		count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat stream, CR alone", OpenAI(), sse, ": hi\r\rdata: {\"usage\":{\"prompt_tokens\":7,\rdata: \"completion_tokens\":5}}\r\rdata: [DONE]\r\r", count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat stream, all ends of lines", OpenAI(), sse, "data: {\"usage\":\rdata: {\"prompt_tokens\":7,\r\ndata: \"completion_tokens\":5}}\n\r\ndata: [DONE]\r\n\r", count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat stream, byte order mark", OpenAI(), sse, "\ufeffdata: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\n", count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat completion, byte order mark", OpenAI(), doc, "\ufeff{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n", count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat stream without its end", OpenAI(), sse, `data: {"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`, count{input: 7, output: 5, known: true}, Ignored{}},
	{"chat stream without usage", OpenAI(), sse, openAIChunk + "data: [DONE]\n\n", count{}, Ignored{}},
	{"responses stream", OpenAI(), sse, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":37,\"output_tokens\":11,\"total_tokens\":48}}}\n\n",
		count{input: 37, output: 11, known: true}, Ignored{}},
	{"Azure", AzureOpenAI(), doc, `{"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}}`, count{input: 19, output: 10, known: true}, Ignored{}},
	{"message", Anthropic(), doc, `{"type":"message","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":5000,"output_tokens":25}}`,
		count{input: 110, output: 25, cached: 5000, reads: 5000, known: true}, Ignored{}},
	{"message stream", Anthropic(), sse, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":900,\"output_tokens\":1}}}\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hello\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":8}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		count{input: 30, output: 15, cached: 900, reads: 900, known: true}, Ignored{}},
	{"message stream, left in the middle", Anthropic(), sse, "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\ndata: {\"type\":\"content",
		count{input: 25, output: 1, known: true}, Ignored{}},
	{"generateContent", Gemini(), doc, `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":60,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]}}`,
		count{input: 10, output: 50, known: true}, Ignored{}},
	{"generateContent, only what is there", Gemini(), doc, `{"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`, count{input: 10, output: 0, known: true}, Ignored{}},
	{"Gemini's stream", Gemini(), sse, "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":10,\"totalTokenCount\":10}}\r\n\r\n" +
		"data: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":7,\"totalTokenCount\":17}}\r\n\r\n" +
		"data: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":12,\"totalTokenCount\":22}}\r\n\r\n",
		count{input: 10, output: 12, known: true}, Ignored{}},
	{"Gemini's list", Gemini(), doc, "[{\"candidates\":[],\n\"usageMetadata\":{\"promptTokenCount\":10,\"totalTokenCount\":10}}\n,\r\n{\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":12,\"totalTokenCount\":22}}\n]",
		count{input: 10, output: 12, known: true}, Ignored{}},
	{"Converse", Bedrock(), doc, `{"output":{},"usage":{"inputTokens":30,"outputTokens":5,"totalTokens":35,"cacheReadInputTokens":1000,"cacheWriteInputTokens":20}}`, count{input: 50, output: 5, cached: 1000, reads: 1000, known: true}, Ignored{}},
	{"ConverseStream", Bedrock(), amazon, frame("contentBlockDelta", `{"delta":{"text":"Hi"}}`) +
		frame("metadata", `{"metrics":{"latencyMs":100},"usage":{"inputTokens":30,"outputTokens":628,"totalTokens":658}}`), count{input: 30, output: 628, known: true}, Ignored{}},
	{"InvokeModel's stream", Bedrock(), amazon, chunk(`{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`) + chunk(`{"type":"content_block_delta"}`) +
		chunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,"outputTokenCount":77,"invocationLatency":1234}}`),
		count{input: 9, output: 77, known: true}, Ignored{}},

	{"negative", OpenAI(), doc, `{"usage":{"prompt_tokens":-5,"completion_tokens":5}}`, count{}, Ignored{Negative: 1}},
	{"negative, after one that is right", Gemini(), sse, "data: {\"usageMetadata\":{\"promptTokenCount\":10}}\n\ndata: {\"usageMetadata\":{\"promptTokenCount\":-1}}\n\n",
		count{input: 10, output: 0, known: true}, Ignored{Negative: 1}},
	{"what stands beside a bad number", Anthropic(), sse, "data: {\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
		"data: {\"usage\":{\"output_tokens\":9000,\"input_tokens\":-1}}\n\ndata: {\"usage\":{\"output_tokens\":8000,\n\ndata: {\"usage\":{\"input_tokens\":26}}\n\n",
		count{input: 26, output: 1, known: true}, Ignored{Negative: 1, Broken: 1}},
	{"absurd", OpenAI(), doc, `{"usage":{"prompt_tokens":1e300,"completion_tokens":5}}`, count{}, Ignored{Absurd: 1}},
	{"absurd digits", OpenAI(), doc, `{"usage":{"total_tokens":` + strings.Repeat("9", 400) + `}}`, count{}, Ignored{Absurd: 1}},
	{"no number", OpenAI(), doc, `{"usage":{"prompt_tokens":"12"}}`, count{}, Ignored{Broken: 1}},
	{"half a token", OpenAI(), doc, `{"usage":{"prompt_tokens":12.5}}`, count{}, Ignored{Broken: 1}},
	{"null", OpenAI(), doc, `{"usage":{"prompt_tokens":null}}`, count{}, Ignored{}},
	{"a broken event", OpenAI(), sse, "data: {\"usage\":{\"prompt_tokens\":7,\n\ndata: {\"usage\":{\"prompt_tokens\":3}}\n\n", count{input: 3, output: 0, known: true}, Ignored{Broken: 1}},
	{"a broken body", OpenAI(), doc, `{"usage":{"prompt_tokens":7`, count{}, Ignored{}},
	{"a broken body, after a number", OpenAI(), doc, `{"usage":{"prompt_tokens":7,`, count{}, Ignored{Broken: 1}},
	{"two usages", OpenAI(), sse, "data: {\"usage\":{\"prompt_tokens\":7}}\n\ndata: {\"usage\":{\"completion_tokens\":3}}\n\n", count{input: 7, output: 3, known: true}, Ignored{}},
	{"a total that is less than its parts", OpenAI(), doc, `{"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":1}}`, count{input: 7, output: 3, known: true}, Ignored{}},
	{"no JSON", OpenAI(), doc, `<html>usage</html>`, count{}, Ignored{}},
	{"no JSON in brackets", OpenAI(), doc, `{"usage":{"prompt_tokens":7]}`, count{}, Ignored{Broken: 1}},
	{"usage elsewhere", OpenAI(), doc, `{"choices":[{"usage":{"prompt_tokens":7}}],"x":{"usage":{"prompt_tokens":7}}}`, count{}, Ignored{}},
	{"a long line", OpenAI(), sse, "data: {\"usage\":{\"prompt_tokens\":7},\"x\":\"" + strings.Repeat("x", 2<<20) + "\"}\n\ndata: {\"usage\":{\"completion_tokens\":3}}\n\n",
		count{input: 7, output: 3, known: true}, Ignored{}},
	{"a long document", OpenAI(), doc, "{\"x\":\"" + strings.Repeat("x", 2<<20) + "\",\"usage\":{\"prompt_tokens\":7}}", count{input: 7, output: 0, known: true}, Ignored{}},
	{"a long event", Bedrock(), amazon, frame("metadata", `{"usage":{"inputTokens":3},"x":"`+strings.Repeat("x", 2<<20)+`"}`), count{input: 3, output: 0, known: true}, Ignored{}},
	{"no frames", Bedrock(), amazon, strings.Repeat("{\"usage\":{\"inputTokens\":3}}", 3), count{}, Ignored{Broken: 1}},
	{"a frame with a wrong checksum", Bedrock(), amazon, strings.Replace(frame("metadata", `{"usage":{"inputTokens":3}}`), "\x00\x00\x00\x17", "\x00\x00\x00\x16", 1),
		count{}, Ignored{Broken: 1}},
	{"half a frame", Bedrock(), amazon, frame("metadata", `{"usage":{"inputTokens":3}}`)[:30], count{}, Ignored{}},
	{"no base64", Bedrock(), amazon, frame("chunk", `{"bytes":"=usage="}`), count{}, Ignored{}},
}

func TestUsage(t *testing.T) {
	for _, c := range responses {
		t.Run(c.name, func(t *testing.T) {
			got, ignored := readIn(c.provider, c.form, c.text)
			require.Equal(t, c.want, got)
			require.Equal(t, c.ignored, ignored)
			if len(c.text) > 2000 {
				return
			}
			for end := range len(c.text) {
				got, ignored := readIn(c.provider, c.form, c.text, end)
				require.Equal(t, c.want, got, c.text[:end])
				require.Equal(t, c.ignored, ignored, c.text[:end])
			}
			bytes := make([]int, len(c.text))
			for i := range bytes {
				bytes[i] = i
			}
			got, ignored = readIn(c.provider, c.form, c.text, bytes...)
			require.Equal(t, c.want, got, "byte by byte")
			require.Equal(t, c.ignored, ignored, "byte by byte")
		})
	}
}

// What is kept of a stream is bounded, whatever comes.
func TestMemory(t *testing.T) {
	var ignored ignored
	for _, c := range []struct{ form, begin, piece string }{
		{sse, "data: ", strings.Repeat("x", 4096)}, {sse, "", "data: " + strings.Repeat("x", 4000) + "\n"}, {doc, `{"usage":{"`, strings.Repeat("x", 4096)},
		{doc, "", strings.Repeat("[", 4096)}, {doc, `{"usage":{"prompt_tokens":`, strings.Repeat("1", 4096)},
	} {
		var of counter
		of.begin(&ignored)
		body := bodyOf(&http.Response{Header: http.Header{"Content-Type": {c.form}}}, &of)
		body.write([]byte(c.begin))
		piece := []byte(c.piece)
		for range 1000 { // 4 MiB
			body.write(piece)
		}
		require.LessOrEqual(t, cap(of.scan.text), 2*maxText)
	}
}
