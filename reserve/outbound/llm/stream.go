package llm

import (
	"bytes"
	"net/http"
	"strings"
)

// maxLine is the longest line of a stream, or event, that is read. A longer one is passed on like
// all others.
const maxLine = 1 << 20

// A body reads the usage out of a response's body.
type body interface {
	write(piece []byte)
	end() // no more comes
}

// bodyOf returns what reads a response's body; nil: nothing does.
func bodyOf(r *http.Response, c *counter) body {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		c.ignored.add(encoded)
		return nil
	}
	switch t := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(t, "text/event-stream"):
		return &events{counter: c}
	case strings.HasPrefix(t, "application/vnd.amazon.eventstream"):
		return &frames{counter: c}
	default:
		return (*documents)(c)
	}
}

// documents is a body of JSON: one document, a list of them, or one after the other.
type documents counter

func (d *documents) write(piece []byte) { d.scan.write(piece) }

func (d *documents) end() {
	if c := (*counter)(d); !c.scan.whole() && (!c.noneYet() || c.bad != 0) {
		c.ignored.add(broken)
	}
}

// events is a body of server-sent events, as the WHATWG's HTML standard has them. An event ends
// with an empty line; what stands in its lines of data is a document.
type events struct {
	counter *counter
	line    []byte // the begin of one whose end has not come
	data    []byte // of the event so far
	skip    bool   // the line, or the event, is too long
	long    bool
	begun   bool // the first line has ended
	cr      bool // the last byte was a carriage return: a line feed that follows belongs to it
}

func (e *events) write(piece []byte) {
	for len(piece) > 0 {
		if e.cr && piece[0] == '\n' {
			e.cr, piece = false, piece[1:]
			continue
		}
		end := lineEnd(piece)
		if e.cr = false; end == len(piece) {
			e.keep(piece)
			return
		}
		if len(e.line) == 0 && !e.skip {
			e.take(piece[:end]) // without a copy
		} else if e.keep(piece[:end]); !e.skip {
			e.take(e.line)
		}
		e.line, e.skip, e.cr = e.line[:0], false, piece[end] == '\r'
		piece = piece[end+1:]
	}
}

// lineEnd returns how many bytes come before the first line feed or carriage return. It does not
// look far for the one before it knows that there is none of the other.
func lineEnd(piece []byte) int {
	const far = 512
	for at := 0; at < len(piece); at += far {
		part := piece[at:min(len(piece), at+far)]
		end := bytes.IndexByte(part, '\n')
		if end < 0 {
			end = len(part)
		}
		if cr := bytes.IndexByte(part[:end], '\r'); cr >= 0 {
			return at + cr
		}
		if end < len(part) {
			return at + end
		}
	}
	return len(piece)
}

// keep keeps a part of a line.
func (e *events) keep(part []byte) {
	if e.skip || len(e.line)+len(part) > maxLine {
		if !e.skip {
			e.counter.ignored.add(tooLong)
		}
		e.skip, e.long, e.line = true, true, nil
		return
	}
	e.line = append(e.line, part...)
}

// take takes a line.
func (e *events) take(line []byte) {
	if !e.begun {
		e.begun, line = true, bytes.TrimPrefix(line, []byte("\ufeff")) // a byte order mark
	}
	if len(line) == 0 {
		e.event()
		return
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok || e.long {
		return
	}
	if len(e.data)+len(data) > maxLine {
		e.counter.ignored.add(tooLong)
		e.long = true
		return
	}
	e.data = append(append(e.data, data...), '\n')
}

// event takes the event whose lines have come.
func (e *events) event() {
	if !e.long && mayTell(e.data) {
		e.counter.event(e.data)
	}
	e.long, e.data = false, e.data[:0]
}

func (e *events) end() {
	if len(e.line) > 0 && !e.skip { // some servers do not end the last line
		e.take(e.line)
	}
	e.event()
}

// mayTell reports whether an event may tell a usage: few do, and to look so is quick.
func mayTell(event []byte) bool {
	return bytes.Contains(event, []byte(`"usage`)) || bytes.Contains(event, []byte(`"amazon-bedrock-invocationMetrics`))
}

// event reads one event's document.
func (c *counter) event(data []byte) {
	c.scan.reset()
	c.scan.write(data)
	if !c.scan.whole() {
		c.has, c.bad = [usageFields]bool{}, 0
		c.ignored.add(broken)
	}
}
