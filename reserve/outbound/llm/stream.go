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
		c.ignored.add(&c.ignored.Encoded)
		return nil
	}
	switch t := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(t, "text/event-stream"):
		return &events{counter: c}
	case strings.HasPrefix(t, "application/vnd.amazon.eventstream"):
		return &frames{counter: c}
	default:
		return c
	}
}

// write reads JSON: one document, a list, or one after the other.
func (c *counter) write(piece []byte) { c.scan.write(piece) }

// events are server-sent events (WHATWG HTML). Behind them may come an error as it would come without them: Gemini's.
type events struct {
	counter *counter
	line    lineState
	name    []byte // that the line begins with
	cr      bool   // the last byte was a carriage return: a line feed that follows belongs to it
}

type lineState uint8

const (
	inName         lineState = iota // at the begin of a line: it is data, another field, or empty
	inData                          // behind "data:"
	inOther                         // in another field
	inBareDocument                  // until the body ends
)

const (
	dataField     = "data:"
	byteOrderMark = "\ufeff"
)

func (e *events) write(piece []byte) {
	for len(piece) > 0 {
		if e.line == inBareDocument {
			e.counter.write(piece)
			return
		}
		if e.cr && piece[0] == '\n' {
			piece = piece[1:]
		}
		e.cr = false
		if e.line == inName && len(e.name) == 0 && len(piece) > 0 && (piece[0] == '{' || piece[0] == '[') {
			e.line = inBareDocument
			continue
		}
		n := bytes.IndexAny(piece, "\r\n")
		if n < 0 {
			e.part(piece)
			return
		}
		e.part(piece[:n])
		e.endLine()
		e.cr = piece[n] == '\r'
		piece = piece[n+1:]
	}
}

func (e *events) part(p []byte) {
	for ; e.line == inName && len(p) > 0; p = p[1:] {
		e.name = append(e.name, p[0])
		switch name := string(e.name); {
		case name == byteOrderMark:
			e.name = e.name[:0]
		case name == dataField:
			e.line = inData
		case !strings.HasPrefix(dataField, name) && !strings.HasPrefix(byteOrderMark, name):
			e.line = inOther
		}
	}
	if e.line == inData {
		e.counter.write(p)
	}
}

func (e *events) endLine() {
	switch {
	case e.line == inData:
		e.counter.write([]byte("\n"))
	case e.line == inName && len(e.name) == 0:
		e.counter.end()
	}
	e.line, e.name = inName, e.name[:0]
}

func (e *events) end() {
	if e.line != inBareDocument {
		e.endLine() // some servers do not end the last line
	}
	e.counter.end()
}
