package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A field is what a place in a document holds.
type field uint8

// The fields of a request.
const (
	_ field = iota
	inModel
	inMaxOutput
	inChoices
)

const (
	// maxBody is how much of a request's body is kept in memory, if it has no GetBody or there is
	// an estimate of one's own. Of a larger one the rest counts as text.
	maxBody       = 8 << 20
	bytesPerToken = 4
	blobTokens    = 1000 // an image
	// guessedOutput is what a call that sets no maximum puts out, until others have told.
	guessedOutput = 500
	maxChoices    = 128
	// maxTokens is the largest number of tokens that is believed. Models read 10 million at most.
	maxTokens = 1 << 24
)

// A prompt is what a request asks for.
type prompt struct {
	model         string
	input, output int
	most          bool // output is the most that it allows
	json          bool
	cut           bool   // what came after the first 8 MiB is not known
	body          []byte // if it was asked for, and is not too large
}

// A reader reads requests' bodies.
type reader struct {
	scan    scanner
	buffer  []byte
	model   string
	most    int
	choices int
}

var readers = sync.Pool{New: func() any {
	r := &reader{buffer: make([]byte, 16<<10)}
	r.scan.to = r
	return r
}}

func (r *reader) document() {}

func (r *reader) value(is field, text []byte, quoted bool) {
	if is == inModel {
		if quoted {
			r.model = plain(text)
		}
		return
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 || quoted {
		return
	}
	switch is {
	case inMaxOutput:
		r.most = max(r.most, int(min(n, maxTokens)))
	case inChoices:
		r.choices = max(r.choices, int(min(n, maxChoices)))
	}
}

// plain returns a string of JSON without its escapes: a name may be written in many ways.
func plain(text []byte) string {
	var s string
	if bytes.IndexByte(text, '\\') < 0 || json.Unmarshal([]byte(`"`+string(text)+`"`), &s) != nil {
		return string(text)
	}
	return s
}

// read reads the body of a request: to its end, or what is kept of it. It returns that, if so asked.
func (p *prompt) read(body io.Reader, shape *shape, toEnd, keep bool) (read []byte, err error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.scan.shape, r.model, r.most, r.choices = shape, "", 0, 0
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
	p.cut = err == nil
	p.json = total > 0 && !r.scan.broken && !r.scan.loose && (p.cut || r.scan.whole())
	p.model = r.model
	text := r.scan.prompt.bytes
	if !p.json {
		text = total
	}
	p.input = sum((text+bytesPerToken-1)/bytesPerToken, r.scan.prompt.blobs*blobTokens)
	choices := max(1, r.choices)
	if p.most = r.most > 0; p.most {
		p.output = min(r.most, maxTokens/choices) * choices
	} else {
		p.output = guessedOutput * choices
	}
	if err == io.EOF {
		err = nil
	}
	return read, err
}

// readPrompt reads what a request asks for. It returns the request to be sent: the same one, if its
// body could be had once more, and else a copy whose body begins with what was read.
func (p *prompt) readFrom(r *http.Request, shape *shape, keep bool) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		_, err := p.read(bytes.NewReader(nil), shape, true, false)
		return r, err
	}
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			defer body.Close()
			read, err := p.read(body, shape, true, keep) // if it fails, so will the one that is sent
			if err == nil && len(read) < maxBody {
				p.body = read
			}
			return r, nil
		}
	}
	stop := context.AfterFunc(r.Context(), func() { r.Body.Close() }) // it may block
	read, err := p.read(r.Body, shape, false, true)
	if !stop() {
		return r, context.Cause(r.Context())
	}
	again := r.WithContext(r.Context())
	if err == nil && len(read) < maxBody {
		p.body = read
		again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(read)), nil }
	}
	rest := io.Reader(r.Body)
	if err != nil { // the caller's body fails: so does the one that is sent
		rest = failing{err}
	}
	if r.ContentLength > int64(len(read)) {
		p.input = sum(p.input, int(min(r.ContentLength-int64(len(read)), maxTokens*bytesPerToken)/bytesPerToken))
	}
	again.Body = restored{io.MultiReader(bytes.NewReader(read), rest), r.Body}
	return again, nil
}

// restored is a request's body of which a part has been read already.
type restored struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// isFile reports whether a request's body is no text at all.
func isFile(r *http.Request) bool {
	t := r.Header.Get("Content-Type")
	return strings.HasPrefix(t, "multipart/") || strings.HasPrefix(t, "audio/") ||
		strings.HasPrefix(t, "application/octet-stream")
}
