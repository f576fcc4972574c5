package llm

import (
	"bytes"
	"strings"
)

// A shape says which places of a JSON document are of interest: those that its paths lead to.
type shape struct {
	is     field // 0: none
	fields map[string]*shape
}

// A path leads from the root of a document, through its objects, to a field.
type path struct {
	is   field
	keys []string
}

// shapeOf returns the shape of documents with those paths.
func shapeOf(paths ...path) *shape {
	root := &shape{}
	for _, p := range paths {
		at := root
		for _, key := range p.keys {
			next := at.fields[key]
			if next == nil {
				if at.fields == nil {
					at.fields = map[string]*shape{}
				}
				next = &shape{}
				at.fields[key] = next
			}
			at = next
		}
		at.is = p.is
	}
	return root
}

// A listener is told what a scanner finds.
type listener interface {
	// value gets a string as it is written between its quotes, or a number or another literal. It
	// must not keep it.
	value(is field, text []byte, quoted bool)
	// document says that a document, or an element of a list at the top, is complete.
	document()
}

// A scanner finds the fields of a shape in JSON that comes in pieces. It keeps nothing but a key or
// a value of interest, so its memory does not grow with the document. It is no validator: it looks
// at brackets, quotes and the order of keys, and else believes what it sees. One document may
// follow another.
type scanner struct {
	shape  *shape
	to     listener
	broken bool // what came is no JSON: the rest is ignored
	loose  bool // something came that is in no object or list

	state   state
	depth   int
	objects uint64            // which of the first 64 levels are objects
	shapes  [maxShapes]*shape // of those of the first levels that are objects of interest
	key     bool              // the next string is a key
	target  *shape            // of the value that comes next; nil: of no interest
	text    []byte            // of that value, or of a key
	cut     bool              // it was too long

	prompt promptSize
}

// promptSize is how much text a document has.
type promptSize struct {
	bytes int // of strings and deep keys; a deep number counts as 4
	blobs int // strings that are not text

	length int  // of the string that is read
	text   bool // that it is surely no image
}

type state uint8

const (
	outside  state = iota // values
	inString              // or key
	inEscape              // after its backslash
	inBare                // a number or a literal
)

const (
	maxShapes = 8
	maxText   = 6 * maxModel // bytes of a value of interest: a name in escapes
	// Keys so deep are those of a tool's schema, which a model is given to read as well.
	deepKey = 6
	// So long a string of nothing but letters is no text, but an image or the like.
	leastBlob = 1024
)

// reset makes the scanner ready for another document.
func (s *scanner) reset() {
	*s = scanner{shape: s.shape, to: s.to, text: s.text[:0]}
}

// whole reports whether the document is complete.
func (s *scanner) whole() bool { return !s.broken && s.depth == 0 && s.state == outside }

// write scans a piece.
func (s *scanner) write(p []byte) {
	for i := 0; i < len(p) && !s.broken; {
		j := i
		switch s.state {
		case inString:
			j += special(p[i:])
			s.take(p[i:j])
			if j < len(p) {
				if p[j] == '"' {
					s.endString()
				} else {
					s.take(p[j : j+1])
					s.state = inEscape
				}
				j++
			}
		case inEscape:
			j++
			s.take(p[i:j])
			s.state = inString
		case inBare:
			for j < len(p) && barely[p[j]] {
				j++
			}
			s.take(p[i:j])
			if j < len(p) {
				s.endBare()
			}
		default:
			s.structure(p[i])
			if s.state != inBare {
				j++
			}
		}
		i = j
	}
}

// special returns how many bytes come before the first quote or backslash. Escapes are frequent, so
// it does not look far for the quote before it knows that there is none.
func special(p []byte) int {
	const far = 512
	for at := 0; ; at += far {
		part := p[at:min(len(p), at+far)]
		end := bytes.IndexByte(part, '"')
		if end < 0 {
			end = len(part)
		}
		if escape := bytes.IndexByte(part[:end], '\\'); escape >= 0 {
			return at + escape
		}
		if end < len(part) || at+far >= len(p) {
			return at + end
		}
	}
}

// barely says which bytes belong to a number or a literal.
var barely = func() (b [256]bool) {
	for c := range b {
		b[c] = !strings.ContainsRune(" \t\r\n,:[]{}\"", rune(c))
	}
	return b
}()

// structure looks at a byte between values.
func (s *scanner) structure(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '{':
		s.push(true)
	case '[':
		s.push(false)
	case '}', ']':
		s.pop(c == '}')
	case ',':
		s.target, s.key = nil, s.isObject(s.depth)
	case ':':
		s.key = false
	case '"':
		s.begin(inString)
	default:
		s.begin(inBare)
	}
}

func (s *scanner) isObject(depth int) bool {
	return depth >= 1 && depth <= 64 && s.objects&(1<<(depth-1)) != 0
}

// push begins an object or a list.
func (s *scanner) push(object bool) {
	inner := s.target
	if s.depth == 0 || s.depth == 1 && !s.isObject(1) {
		inner = s.shape // a document, or an element of a list of documents
	}
	if s.depth++; s.depth <= 64 {
		s.objects &^= 1 << (s.depth - 1)
		if object {
			s.objects |= 1 << (s.depth - 1)
		}
	}
	if s.depth <= maxShapes {
		if !object {
			inner = nil
		}
		s.shapes[s.depth-1] = inner
	}
	s.target, s.key = nil, object
}

// pop ends an object or a list.
func (s *scanner) pop(object bool) {
	if s.depth == 0 || s.depth <= 64 && s.isObject(s.depth) != object {
		s.broken = true
		return
	}
	s.depth--
	s.target, s.key = nil, false
	if s.depth == 0 || s.depth == 1 && !s.isObject(1) {
		s.to.document()
	}
}

func (s *scanner) begin(state state) {
	s.loose = s.loose || s.depth == 0
	s.state, s.text, s.cut = state, s.text[:0], false
	s.prompt.length, s.prompt.text = 0, false
}

// take keeps a part of a key or a value, if it is of interest.
func (s *scanner) take(part []byte) {
	s.prompt.length += len(part)
	if len(part) > 0 && !s.prompt.text && s.prompt.length >= leastBlob {
		s.prompt.text = isText(part)
	}
	if !(s.key && s.depth <= maxShapes) && (s.target == nil || s.target.is == 0) {
		return
	}
	if len(s.text)+len(part) > maxText {
		s.cut, part = true, part[:maxText-len(s.text)]
	}
	s.text = append(s.text, part...)
}

// isText reports whether there is something that no base64 has.
func isText(part []byte) bool {
	for _, c := range part {
		if c == ' ' || c == '\\' || c >= 0x80 {
			return true
		}
	}
	return false
}

func (s *scanner) endString() {
	s.state = outside
	if s.key {
		s.target = nil
		if s.depth >= 1 && s.depth <= maxShapes && !s.cut {
			if at := s.shapes[s.depth-1]; at != nil {
				s.target = at.fields[string(s.text)]
			}
		}
		if s.depth >= deepKey {
			s.prompt.bytes += s.prompt.length
		}
		return
	}
	switch {
	case s.target != nil:
	case s.prompt.length >= leastBlob && !s.prompt.text:
		s.prompt.blobs++
	default:
		s.prompt.bytes += s.prompt.length
	}
	s.tell(true)
}

func (s *scanner) endBare() {
	s.state = outside
	if s.depth >= 2 && s.target == nil && len(s.text) == 0 { // a token of an input that is given in tokens
		s.prompt.bytes += bytesPerToken
	}
	s.tell(false)
}

// tell tells of a value.
func (s *scanner) tell(quoted bool) {
	if s.target != nil && s.target.is != 0 {
		s.to.value(s.target.is, s.text, quoted)
	}
	s.target = nil
}
