package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

const usageWanted = `"stream_options":{"include_usage":true},`

func (c *call) askForUsage(r *http.Request) *http.Request {
	if !c.streams || c.options || c.body == nil || c.endpoint.name != "completions" ||
		bytes.Contains(c.body, []byte(`"stream_options"`)) {
		return r
	}
	before, after, found := bytes.Cut(c.body, []byte("{"))
	if !found {
		return r
	}
	text := make([]byte, 0, len(c.body)+len(usageWanted))
	text = append(append(append(append(text, before...), '{'), usageWanted...), after...)
	bodies.Close(r)
	asking := r.WithContext(r.Context())
	asking.ContentLength = int64(len(text))
	asking.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	asking.Body, _ = asking.GetBody()
	c.asked = true
	return asking
}

func hideUsage(r *http.Response) {
	h := r.Header
	if r.StatusCode < 300 && h.Get("Content-Encoding") == "" && strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		r.Body = &withoutUsage{body: r.Body}
		r.ContentLength = -1
		h.Del("Content-Length")
	}
}

// withoutUsage is a stream without the event that has only the usage, and without the nulls for it in others.
type withoutUsage struct {
	body    io.ReadCloser
	in, out []byte // the event that is not complete; what the caller may read
	long    bool   // that event is passed on as it comes
	err     error
}

// longEvent is how much of an event is kept. The event with the usage has some 500 bytes.
const longEvent = 64 << 10

func (w *withoutUsage) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		at := len(w.in)
		w.in = append(w.in, make([]byte, 4096)...)
		n, err := w.body.Read(w.in[at:])
		w.in = w.in[:at+n]
		w.split()
		if w.err = err; err != nil {
			w.out = append(w.out, w.in...)
			w.in = nil
		}
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

func (w *withoutUsage) split() {
	for {
		end := endOfEvent(w.in)
		if end == 0 {
			break
		}
		if event := w.in[:end]; w.long {
			w.out, w.long = append(w.out, event...), false
		} else {
			w.out = append(w.out, hidden(event)...)
		}
		w.in = append(w.in[:0], w.in[end:]...)
	}
	if w.long || len(w.in) > longEvent {
		w.long = true
		keep := min(len(w.in), 3) // perhaps the begin of the event's end
		w.out = append(w.out, w.in[:len(w.in)-keep]...)
		w.in = append(w.in[:0], w.in[len(w.in)-keep:]...)
	}
}

// endOfEvent returns 0 for an event that is not complete.
func endOfEvent(text []byte) int {
	best := 0
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(text, []byte(end)); i >= 0 && (best == 0 || i+len(end) < best) {
			best = i + len(end)
		}
	}
	return best
}

func hidden(event []byte) []byte {
	if !bytes.Contains(event, []byte(`"usage"`)) {
		return event
	}
	if _, data, ok := bytes.Cut(event, []byte("data:")); ok {
		var chunk struct {
			Choices *[]json.RawMessage
			Usage   *struct{}
		}
		if json.Unmarshal(data, &chunk) == nil && chunk.Usage != nil && chunk.Choices != nil && len(*chunk.Choices) == 0 {
			return nil
		}
	}
	for _, null := range []string{`,"usage":null`, `, "usage": null`} {
		event = bytes.ReplaceAll(event, []byte(null), nil) // in a text it would have backslashes
	}
	return event
}

func (w *withoutUsage) Close() error { return w.body.Close() }
