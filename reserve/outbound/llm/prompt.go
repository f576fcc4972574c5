package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

const (
	inModel field = iota + 1
	inMaxOutput
	inChoices
	inStream
	inPrompt
)

const (
	// maxBody bounds what is kept of a body without GetBody. The rest does not count.
	maxBody       = 8 << 20
	bytesPerToken = 4 // of text that is not read
	guessedOutput = 500
	maxChoices    = 128
	// Models read 10 million tokens at most.
	maxTokens = 1 << 24
)

var promptForm = formOf(map[field]string{
	inModel: "model model_id",
	inMaxOutput: "max_tokens max_completion_tokens max_output_tokens max_tokens_to_sample max_gen_len maxTokens " +
		"inferenceConfig.maxTokens generationConfig.maxOutputTokens generation_config.max_output_tokens " +
		"textGenerationConfig.maxTokenCount parameters.maxOutputTokens options.num_predict",
	inChoices: "n best_of num_generations generationConfig.candidateCount generation_config.candidate_count",
	inStream:  "stream",
	inPrompt:  "prompt.id",
}, map[trait]string{
	isBlob:    "data bytes file_data fileData b64_json images",
	isAddress: "url image_url uri fileUri file_uri file_url server_url",
	isRef: "previous_response_id conversation conversation_id file_id file_ids vector_store_ids thread_id assistant_id " +
		"cachedContent cached_content container session_id mcp_servers",
	isTool: "type",
})

// isURL is false for a data URL.
func isURL(text []byte) bool {
	before, _, found := bytes.Cut(text, []byte(":"))
	return found && len(before) < 10 && string(before) != "data"
}

var serverTools = regexp.MustCompile(
	`^(web_search|web_fetch|file_search|code_interpreter|code_execution|mcp|google_search)`)

type prompt struct {
	model         string
	input, output int

	modelAt, modelEnd int // in the body, between its quotes

	most    bool // output is the most that it allows
	choices int  // at least 1
	json    bool
	streams bool   // it wants a stream of events
	state   bool   // it refers to something that the server keeps
	blobs   int    // images, sounds and files
	body    []byte // if it was asked for, and is not too large
}

type promptReader struct {
	scan   scanner
	buffer []byte
	prompt
}

var readers = sync.Pool{New: func() any {
	r := &promptReader{buffer: make([]byte, 16<<10)}
	r.scan.to, r.scan.form = r, promptForm
	return r
}}

func (r *promptReader) document() {}

func (r *promptReader) value(is field, text []byte, quoted bool) {
	switch is {
	case inModel:
		if quoted {
			r.model, r.modelAt, r.modelEnd = plain(text), r.scan.end-r.scan.length, r.scan.end
		}
	case inStream:
		r.streams = string(text) == "true"
	case inPrompt:
		r.state = true
	case inMaxOutput:
		r.output = max(r.output, wholeNumber(text, quoted, maxTokens))
	case inChoices:
		r.choices = max(r.choices, wholeNumber(text, quoted, maxChoices))
	}
}

// wholeNumber returns 0 for what is none.
func wholeNumber(text []byte, quoted bool, most int64) int {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 || quoted {
		return 0
	}
	return int(min(n, most))
}

func plain(text []byte) string {
	var s string
	if bytes.IndexByte(text, '\\') < 0 || json.Unmarshal([]byte(`"`+string(text)+`"`), &s) != nil {
		return string(text)
	}
	return s
}

func (p *prompt) read(body io.Reader, toEnd, keep bool) (read []byte, err error) {
	r := readers.Get().(*promptReader)
	defer readers.Put(r)
	r.prompt = prompt{}
	r.scan.reset()
	total := 0
	for err == nil && (toEnd || total < maxBody) {
		var n int
		n, err = body.Read(r.buffer)
		r.scan.write(r.buffer[:n])
		if keep && total < maxBody {
			read = append(read, r.buffer[:n]...)
		}
		total += n
	}
	*p = r.prompt
	cut := err == nil // what comes after the first 8 MiB is not known
	p.json = total > 0 && !r.scan.broken && !r.scan.loose && (cut || r.scan.whole())
	p.state = p.state || r.scan.size.state
	milli := int64(total) * 1000 / bytesPerToken
	if p.json {
		milli = r.scan.size.milli
	}
	p.blobs = r.scan.size.blobs
	p.input = int(min((milli+999)/1000, maxTokens)) + r.scan.size.blobTokens
	p.choices = max(1, p.choices)
	if p.most = p.output > 0; !p.most {
		p.output = guessedOutput
	}
	p.output = min(p.output, maxTokens/p.choices) * p.choices
	if err == io.EOF {
		err = nil
	}
	if err == nil && len(read) < maxBody {
		p.body = read
	}
	return read, err
}

// readFrom returns the request to send: a copy, if the body can be read only once.
func (p *prompt) readFrom(r *http.Request, keep bool) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		_, err := p.read(bytes.NewReader(nil), true, false)
		return r, err
	}
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			defer body.Close()
			_, _ = p.read(body, true, keep) // if it fails, so will the one that is sent
			return r, nil
		}
	}
	stop := context.AfterFunc(r.Context(), func() { r.Body.Close() }) // it may block
	read, err := p.read(r.Body, false, true)
	if !stop() {
		return r, context.Cause(r.Context())
	}
	again := r.WithContext(r.Context())
	if p.body != nil {
		again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(read)), nil }
	}
	again.Body = struct {
		io.Reader
		io.Closer
	}{bodies.Again(read, r.Body, err), r.Body}
	return again, nil
}
