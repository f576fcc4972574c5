package llm

import (
	"bytes"
	"strconv"
	"strings"
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
	ofID
	ofStatus
)

// Usage is what one call used, in tokens.
type Usage struct {
	Input       int // all of it: what was read from a cache, and written to it, included
	CachedInput int // of Input, what was read from a cache
	Output      int // reasoning included
}

// usageShape has the places of all providers' usages, which don't contradict each other.
var usageShape = shapeOf(func() []path {
	paths := []path{
		{ofType, []string{"type"}},
		{ofID, []string{"id"}}, {ofStatus, []string{"status"}}, // OpenAI's background responses
		{ofError, []string{"error", "type"}}, {ofError, []string{"error", "code"}}, {ofError, []string{"error", "status"}},
		{ofError, []string{"response", "error", "code"}},
	}
	add := func(at []string, is field, names ...string) {
		for _, name := range names {
			paths = append(paths, path{is, append(at[:len(at):len(at)], name)})
		}
	}
	for _, at := range [][]string{
		{"usage"}, {"response", "usage"}, {"message", "usage"}, {"x_groq", "usage"}, // OpenAI, Anthropic, Mistral, Groq
		{"usage", "tokens"}, {"delta", "usage", "tokens"}, // Cohere
		{"meta", "tokens"}, {"meta", "billed_units"}, {"response", "meta", "tokens"},
	} {
		add(at, ofInput, "prompt_tokens", "input_tokens", "inputTokens")
		add(at, ofCacheWrite, "cache_creation_input_tokens", "cacheWriteInputTokens")
		add(at, ofCacheRead, "cache_read_input_tokens", "cacheReadInputTokens")
		add(at, ofCached, "prompt_cache_hit_tokens") // DeepSeek
		for _, details := range []string{"prompt_tokens_details", "input_tokens_details"} {
			paths = append(paths, path{ofCached, append(at[:len(at):len(at)], details, "cached_tokens")})
		}
		add(at, ofOutput, "completion_tokens", "output_tokens", "outputTokens")
		add(at, ofTotal, "total_tokens")
	}
	add([]string{"usageMetadata"}, ofInput, "promptTokenCount") // Gemini
	add([]string{"usageMetadata"}, ofCacheWrite, "toolUsePromptTokenCount")
	add([]string{"usageMetadata"}, ofCached, "cachedContentTokenCount")
	add([]string{"usageMetadata"}, ofOutput, "candidatesTokenCount")
	add([]string{"usageMetadata"}, ofThought, "thoughtsTokenCount")
	add([]string{"usageMetadata"}, ofTotal, "totalTokenCount")
	add([]string{"amazon-bedrock-invocationMetrics"}, ofInput, "inputTokenCount")
	add([]string{"amazon-bedrock-invocationMetrics"}, ofOutput, "outputTokenCount")
	add([]string{"amazon-bedrock-invocationMetrics"}, ofCacheWrite, "cacheWriteInputTokenCount")
	add([]string{"amazon-bedrock-invocationMetrics"}, ofCacheRead, "cacheReadInputTokenCount")
	add(nil, ofInput, "prompt_eval_count") // Ollama
	add(nil, ofOutput, "eval_count")
	return paths
}()...)

func usageTrait(key []byte) trait {
	switch string(key) {
	case "content", "text", "delta", "arguments", "partial_json", "input", "thinking", "reasoning_content", "reasoning",
		"refusal", "completion", "generation", "outputText", "response":
		return isOutput
	}
	return isText
}

type count struct {
	input, output int
	known         bool
}

type ending uint8

const (
	well    ending = iota
	failed         // an error came
	refusal        // there were too many calls, or the server is overloaded
)

// counter finds the usage in a body, or in each event of a stream, and measures the text since the latest usage.
type counter struct {
	scan    scanner
	ignored *ignored
	text    [64]byte // of scan

	has    [usageFields]bool // in this document
	said   [usageFields]int  // in this document
	bad    reason            // of a number in it; 0: none
	repeat bool              // this document repeats what others have put out
	fields [usageFields]int  // the latest ones of all documents that count
	count  count
	cached int  // of the count's input and of what is not counted, what was read from a cache
	reads  int  // input that was read from a cache and is not counted
	all    bool // it is counted, too
	ending ending
	id     string // of the response
	later  bool   // the response is not complete: its usage comes when it is asked for
	seen   bool   // text was put out
	milli  int64  // thousandths of a token, put out since the latest usage
}

func (c *counter) begin(ignored *ignored) {
	c.scan.shape, c.scan.to, c.scan.text = usageShape, c, c.text[:0]
	c.scan.traits, c.scan.onlyOutput = usageTrait, true
	c.ignored = ignored
}

func (c *counter) value(is field, text []byte, quoted bool) {
	if string(text) == "null" && !quoted {
		return
	}
	switch is {
	case ofType:
		c.repeat = bytes.HasSuffix(text, []byte(".done"))
		return
	case ofError:
		c.ending = max(c.ending, endingOf(string(text)))
		return
	case ofID:
		c.id = string(text[:min(len(text), maxModel)])
		return
	case ofStatus:
		c.later = string(text) == "queued" || string(text) == "in_progress"
		return
	}
	n, bad := tokensOf(text)
	if quoted && bad == 0 {
		bad = broken
	}
	if bad != 0 {
		c.bad = bad
		return
	}
	c.has[is], c.said[is] = true, n
}

func (c *counter) noneYet() bool { return c.has == [usageFields]bool{} }

func tokensOf(text []byte) (n int, bad reason) {
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil && f == 0 || f != f:
		return 0, broken
	case f < 0:
		return 0, negative
	case f > maxTokens:
		return 0, absurd
	case f != float64(int(f)):
		return 0, broken
	}
	return int(f), 0
}

// A document with an impossible number is ignored.
func (c *counter) document() {
	c.measure()
	switch {
	case c.bad != 0:
		c.ignored.add(c.bad)
	case !c.noneYet():
		c.take()
	}
	c.has, c.bad = [usageFields]bool{}, 0
}

func (c *counter) measure() {
	if size := &c.scan.size; size.texts > 0 && !c.repeat {
		c.seen = true
		c.milli += max(size.milli, int64(size.texts)*1000)
	}
	c.scan.size, c.repeat = size{}, false
}

// A stream tells input first, and output later or repeatedly.
func (c *counter) take() {
	f := &c.fields
	for is, has := range c.has {
		if has {
			f[is] = c.said[is]
		}
	}
	if c.has[ofOutput] || c.has[ofThought] || c.has[ofTotal] {
		c.milli = 0
	}
	c.reads, c.cached = f[ofCacheRead], f[ofCached]+f[ofCacheRead]
	c.count.input, c.count.output = f[ofInput]+f[ofCacheWrite], f[ofOutput]+f[ofThought]
	if c.all {
		c.count.input, c.reads = c.count.input+c.reads, 0
	}
	if rest := f[ofTotal] - c.count.input - c.count.output; rest > 0 && c.has[ofTotal] {
		if c.count.input == 0 && c.count.output == 0 {
			c.count.input = rest // nothing but a total
		} else {
			c.count.output += rest
		}
	}
	c.count.known = true
}

func endingOf(name string) ending {
	switch name {
	case "429", "503", "529", "RESOURCE_EXHAUSTED", "UNAVAILABLE":
		return refusal
	}
	for _, part := range []string{"rate_limit", "overloaded", "throttl"} {
		if strings.Contains(name, part) {
			return refusal
		}
	}
	return failed
}

// unsaid returns the tokens put out since the latest usage.
func (c *counter) unsaid() int { return int(min((c.milli+500)/1000, maxTokens)) }

func (c *counter) beginEvent() { c.scan.reset() }

func (c *counter) endEvent() {
	if !c.scan.whole() {
		c.measure()
		if !c.noneYet() || c.bad != 0 {
			c.ignored.add(broken)
		}
		c.has, c.bad, c.repeat = [usageFields]bool{}, 0, false
	}
}
