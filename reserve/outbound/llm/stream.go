package llm

import (
	"bytes"
	"net/http"
	"strings"
)

type body interface {
	write(piece []byte)
	end() // no more comes
}

// bodyOf returns nil if nothing can read the body.
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

// documents is JSON: one document, a list, or one after the other.
type documents counter

func (d *documents) write(piece []byte) { d.scan.write(piece) }

func (d *documents) end() {
	c := (*counter)(d)
	if !c.scan.whole() {
		c.measure()
		if !c.noneYet() || c.bad != 0 {
			c.ignored.add(broken)
		}
	}
}

// events are server-sent events (WHATWG HTML).
type events struct {
	counter *counter
	line    lineState
	name    int  // bytes of "data:" that the line begins with
	marks   int  // bytes of a byte order mark that have come
	cr      bool // the last byte was a carriage return: a line feed that follows belongs to it
	data    bool // the event has data
}

type lineState uint8

const (
	atMark  lineState = iota // at the begin of the stream, where a byte order mark may be
	inName                   // at the begin of a line: it is data, another field, or empty
	inData                   // behind "data:"
	inOther                  // in another field
)

const (
	dataField     = "data:"
	byteOrderMark = "\ufeff"
)

func (e *events) write(piece []byte) {
	for len(piece) > 0 {
		piece = piece[e.step(piece):]
	}
}

// step returns 0 if only the state changed.
func (e *events) step(piece []byte) int {
	c, afterCR := piece[0], e.cr
	e.cr = false
	switch {
	case afterCR && c == '\n':
		return 1
	case e.line == atMark:
		return e.mark(c)
	case c == '\n' || c == '\r':
		e.cr = c == '\r'
		e.endLine()
		return 1
	case e.line == inName:
		return e.fieldName(c)
	}
	n := lineEnd(piece)
	if e.line == inData {
		e.counter.scan.write(piece[:n])
	}
	return n
}

func (e *events) mark(c byte) int {
	if c != byteOrderMark[e.marks] {
		e.line = inName
		return 0
	}
	if e.marks++; e.marks == len(byteOrderMark) {
		e.line = inName
	}
	return 1
}

func (e *events) fieldName(c byte) int {
	if c != dataField[e.name] {
		e.line = inOther
		return 0
	}
	if e.name++; e.name == len(dataField) {
		e.beginData()
	}
	return 1
}

func (e *events) beginData() {
	e.line = inData
	if !e.data {
		e.data = true
		e.counter.beginEvent()
	}
}

func (e *events) endLine() {
	switch {
	case e.line == inData:
		e.counter.scan.write(newLine)
	case e.line == inName && e.name == 0:
		e.endEvent()
	}
	e.line, e.name = inName, 0
}

var newLine = []byte("\n")

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

func (e *events) endEvent() {
	if e.data {
		e.data = false
		e.counter.endEvent()
	}
}

func (e *events) end() {
	if e.line == inData {
		e.counter.scan.write(newLine) // some servers do not end the last line
	}
	e.endEvent()
}
