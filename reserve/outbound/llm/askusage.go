package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

const usageWanted = `"stream_options":{"include_usage":true},`

func (c *call) askForUsage(r *http.Request, body []byte) *http.Request {
	if !c.streams || body == nil || c.endpoint.name != "completions" ||
		bytes.Contains(body, []byte(`"stream_options"`)) {
		return r
	}
	before, after, found := bytes.Cut(body, []byte("{"))
	if !found {
		return r
	}
	bodies.Close(r)
	c.asked = true
	return withBody(r, slices.Concat(before, []byte("{"+usageWanted), after))
}

func hideUsage(r *http.Response) {
	h := r.Header
	events := strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
	if r.StatusCode < 300 && h.Get("Content-Encoding") == "" && events {
		r.Body = &withoutUsage{ReadCloser: r.Body, lines: bufio.NewReaderSize(r.Body, longLine)}
		r.ContentLength = -1
		h.Del("Content-Length")
	}
}

// withoutUsage is a stream without the event that has only the usage, and without the nulls for it in others.
type withoutUsage struct {
	io.ReadCloser
	lines *bufio.Reader
	out   []byte // what the caller may read
	long  bool   // the rest of a long line comes
	gone  bool   // the event's line was left out: so is the empty line behind it
	err   error
}

// longLine is how much of a line is kept: longer ones are passed on. The event with the usage has some 500 bytes.
const longLine = 4096

func (w *withoutUsage) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.next()
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

func (w *withoutUsage) next() {
	line, err := w.lines.ReadSlice('\n')
	whole := !w.long && err == nil
	if w.long = err == bufio.ErrBufferFull; !w.long {
		w.err = err
	}
	if whole && w.gone && len(bytes.TrimRight(line, "\r\n")) == 0 {
		line = nil
	}
	w.gone = false
	if whole && len(line) > 0 {
		line = hidden(line)
		w.gone = len(line) == 0
	}
	w.out = line
}

// hidden returns nil for a line that has nothing but the usage.
func hidden(line []byte) []byte {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok || !bytes.Contains(line, []byte(`"usage"`)) {
		return line
	}
	var chunk struct {
		Choices *[]json.RawMessage
		Usage   *struct{}
	}
	if json.Unmarshal(data, &chunk) == nil && chunk.Usage != nil && chunk.Choices != nil && len(*chunk.Choices) == 0 {
		return nil
	}
	for _, null := range []string{`,"usage":null`, `, "usage": null`} {
		line = bytes.ReplaceAll(line, []byte(null), nil) // in a text it would have backslashes
	}
	return line
}
