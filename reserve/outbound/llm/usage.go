package llm

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

const (
	ofInput field = iota + 1
	ofCacheWrite
	ofOutput
	ofThought
	ofTotal
	ofCached    // input that was read from a cache, and is part of the input
	ofCacheRead // the same, and is not part of it
	usageFields
	ofType // of an event
	ofError
	ofCode // of an error, or of a success
	ofID
	ofStatus
)

// Usage is what one call used, in tokens.
type Usage struct {
	Input       int // all of it: what was read from a cache, and written to it, included
	CachedInput int // of Input, what was read from a cache
	Output      int // reasoning included
}

// usageForm has the places of all providers' usages, which don't contradict each other.
var usageForm = formOf(map[field]string{
	ofType: "type", ofID: "id", ofStatus: "status",
	// A code or a sentence says what an error is, and until when: OpenRouter's is in a choice, and at the top that of
	// the Responses API, DashScope, vLLM, Mistral and MiniMax.
	ofError: "error error.type error.code error.status error.message error.details[.retryDelay response.error.code " +
		"response.error.message choices[.error.code error_type delta.error",
	ofCode: "code message error_msg base_resp.status_msg",
	ofInput: inUsages("prompt_tokens input_tokens inputTokens promptTokenCount inputTokenCount") +
		" prompt_eval_count", // Ollama
	ofCacheWrite: inUsages("cache_creation_input_tokens cacheWriteInputTokens toolUsePromptTokenCount " +
		"cacheWriteInputTokenCount"),
	ofCacheRead: inUsages("cache_read_input_tokens cacheReadInputTokens cacheReadInputTokenCount"),
	ofCached: inUsages("prompt_cache_hit_tokens prompt_tokens_details.cached_tokens " +
		"input_tokens_details.cached_tokens cachedContentTokenCount"),
	ofOutput: inUsages("completion_tokens output_tokens outputTokens candidatesTokenCount outputTokenCount") +
		" eval_count",
	ofThought: inUsages("thoughtsTokenCount"),
	ofTotal:   inUsages("total_tokens totalTokenCount"),
}, map[trait]string{
	isOutput: "content text delta arguments partial_json input thinking reasoning_content reasoning refusal " +
		"completion generation outputText response",
})

func inUsages(names string) (paths string) {
	for _, at := range []string{
		"usage", "response.usage", "message.usage", "x_groq.usage", // OpenAI, Anthropic, Mistral, Groq
		"usage.tokens", "delta.usage.tokens", "meta.tokens", "meta.billed_units", "response.meta.tokens", // Cohere
		"usageMetadata", "amazon-bedrock-invocationMetrics", // Gemini, Bedrock
	} {
		for name := range strings.FieldsSeq(names) {
			paths += " " + at + "." + name
		}
	}
	return paths
}

type count struct {
	input, output int
	cached        int // of the input and of reads, what was read from a cache
	reads         int // input that was read from a cache and is not counted
	known         bool
}

func (n count) usage() Usage {
	return Usage{Input: n.input + n.reads, CachedInput: n.cached, Output: n.output}
}

type ending uint8

const (
	well    ending = iota
	failed         // an error came
	refusal        // see refusals
)

// counter finds the usage in a body, or in each event of a stream, and measures the text since the latest usage.
type counter struct {
	scan    scanner
	ignored *ignored
	text    [64]byte // of scan
	levels  [8]level // of scan
	path    [64]byte // of scan

	has    [usageFields]bool // in this document
	said   [usageFields]int  // in this document
	bad    *uint64           // what counts a number in it that is none; nil: there is none
	repeat bool              // this document repeats what others have put out
	fields [usageFields]int  // the latest ones of all documents that count
	count  count
	all    bool // input that was read from a cache is counted, too
	ending ending
	after  time.Duration // for which a refusal wants no call
	id     string        // of the response
	later  bool          // the response is not complete: its usage comes when it is asked for
	seen   bool          // text was put out
	milli  int64         // thousandths of a token, put out since the latest usage
}

func (c *counter) begin(ignored *ignored) {
	c.scan.form, c.scan.to = usageForm, c
	c.scan.text, c.scan.levels, c.scan.path = c.text[:0], c.levels[:0], c.path[:0]
	c.ignored = ignored
}

func (c *counter) value(is field, text []byte, quoted bool) {
	if len(text) == 0 || !quoted && (string(text) == "null" || string(text) == "false") {
		return
	}
	switch is {
	case ofType:
		c.repeat = bytes.HasSuffix(text, []byte(".done"))
		switch string(text) {
		case "error":
			c.ending = max(c.ending, failed)
		case "rate_limited", "service_tier_capacity_exceeded": // Mistral's
			c.ending = refusal
		}
	case ofError:
		c.ending = max(c.ending, failed)
		c.fails(text)
	case ofCode:
		c.fails(text)
	case ofID:
		c.id = string(text[:min(len(text), maxModel)])
	case ofStatus:
		c.later = string(text) == "queued" || string(text) == "in_progress"
	default:
		n, err := strconv.ParseFloat(string(text), 64)
		switch {
		case n < 0:
			c.bad = &c.ignored.Negative
		case n > maxTokens: // also with an error, for too many digits
			c.bad = &c.ignored.Absurd
		case err != nil || quoted || n != float64(int(n)):
			c.bad = &c.ignored.Broken
		default:
			c.has[is], c.said[is] = true, int(n)
		}
	}
}

// header reads the usage that Bedrock's headers tell, if both are there.
func (c *counter) header(h http.Header) {
	input, output := h.Get("X-Amzn-Bedrock-Input-Token-Count"), h.Get("X-Amzn-Bedrock-Output-Token-Count")
	if input != "" && output != "" {
		c.value(ofInput, []byte(input), false)
		c.value(ofOutput, []byte(output), false)
		c.document()
	}
}

func (c *counter) noneYet() bool { return c.has == [usageFields]bool{} }

// A document with an impossible number is ignored.
func (c *counter) document() {
	if text := &c.scan.size; text.texts > 0 && !c.repeat {
		c.seen = true
		c.milli += max(text.milli, int64(text.texts)*1000)
	}
	switch {
	case c.bad != nil:
		c.ignored.add(c.bad)
	case !c.noneYet():
		c.take()
	}
	c.scan.size, c.repeat, c.has, c.bad = size{}, false, [usageFields]bool{}, nil
}

// A stream tells input first, and output later or repeatedly.
func (c *counter) take() {
	f, n := &c.fields, &c.count
	for is, has := range c.has {
		if has {
			f[is] = c.said[is]
		}
	}
	if c.has[ofOutput] || c.has[ofThought] || c.has[ofTotal] {
		c.milli = 0
	}
	n.reads, n.cached = f[ofCacheRead], f[ofCached]+f[ofCacheRead]
	n.input, n.output = f[ofInput]+f[ofCacheWrite], f[ofOutput]+f[ofThought]
	if c.all {
		n.input, n.reads = n.input+n.reads, 0
	}
	if rest := f[ofTotal] - n.input - n.output; rest > 0 && c.has[ofTotal] {
		if n.input == 0 && n.output == 0 {
			n.input = rest // nothing but a total
		} else {
			n.output += rest
		}
	}
	n.known = true
}

func (c *counter) fails(why []byte) {
	if refusals.Match(why) {
		c.ending = refusal
	}
	c.after = max(c.after, min(reply.Wait(string(why)), 5*time.Minute)) // as of outbound.WithMaxRetryAfter
}

// refusals are errors of too many calls, or of a server that is overloaded.
var refusals = regexp.MustCompile(`(?i)^(429|503|529|130[2-5])$|exhausted|unavailable|rate.?limit|overload|throttl|` +
	`too busy|too.?many.?(concurrent|requests)|server.?busy|slow.?down|pending requests|capacity|queue.?(is.)?full|` +
	`high demand`) // 1302 to 1305 are Zhipu's

// unsaid returns the tokens put out since the latest usage.
func (c *counter) unsaid() int { return int(min((c.milli+500)/1000, maxTokens)) }

// end ends an event, or the body. A document that is cut off there is ignored.
func (c *counter) end() {
	if !c.scan.whole() {
		if !c.noneYet() || c.bad != nil {
			c.bad = &c.ignored.Broken
		}
		c.document()
	}
	c.scan.reset()
}
