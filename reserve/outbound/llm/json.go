package llm

import (
	"bytes"
	"strings"
)

type shape struct {
	is     field // 0: none
	fields map[string]*shape
}

type path struct {
	is   field
	keys []string
}

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

type listener interface {
	// value gets a string as written between its quotes, or another literal. It must not keep text.
	value(is field, text []byte, quoted bool)
	// document ends a document, or an element of a list at the top.
	document()
}

// scanner finds fields in JSON that comes in pieces, and measures text. It does not validate.
type scanner struct {
	shape      *shape
	to         listener
	traits     func(key []byte) trait // what a key says of its value
	onlyOutput bool
	broken     bool // what came is not JSON: the rest is ignored
	loose      bool // something came that is in no object or list

	state   state
	depth   int
	objects uint64            // which of the first 64 levels are objects
	shapes  [maxShapes]*shape // of those of the first levels that are objects of interest
	key     bool              // the next string is a key
	target  *shape            // of the value that comes next; nil: of no interest
	text    []byte            // of that value, or of a key
	cut     bool              // it was too long
	trait   trait             // of the latest key
	length  int               // bytes of the string that is read
	base64  bool              // it has the characters of base64 only
	meter   meter             // of that string

	size size
}

type size struct {
	milli      int64 // thousandths of a token
	texts      int   // strings that counted
	blobs      int   // images, sounds and files, as base64
	blobTokens int
	state      bool // it refers to something that the server keeps
}

type trait uint8

const (
	isText    trait = iota
	isBlob          // an image or another file, if it is base64
	isRef           // the name of something that the server keeps or fetches
	isAddress       // such a name, if it is an address
	isTool          // such a name, if it is that of a tool that the provider runs
	isOutput        // text that a model has put out
)

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
	// Keys this deep belong to a tool's schema, which a model reads.
	deepKey = 6
	// A shorter string is text under any key.
	leastBlob = 256
)

func (s *scanner) reset() {
	*s = scanner{shape: s.shape, to: s.to, traits: s.traits, onlyOutput: s.onlyOutput, text: s.text[:0]}
}

func (s *scanner) whole() bool { return !s.broken && s.depth == 0 && s.state == outside }

func (s *scanner) write(p []byte) {
	for len(p) > 0 && !s.broken {
		switch s.state {
		case inString:
			p = p[s.inString(p):]
		case inEscape:
			s.take(p[:1])
			s.state, p = inString, p[1:]
		case inBare:
			p = p[s.inBare(p):]
		default:
			if s.structure(p[0]); s.state != inBare {
				p = p[1:]
			}
		}
	}
}

func (s *scanner) inString(p []byte) int {
	n := special(p)
	s.take(p[:n])
	if n == len(p) {
		return n
	}
	if p[n] == '"' {
		s.endString()
	} else {
		s.take(p[n : n+1])
		s.state = inEscape
	}
	return n + 1
}

func (s *scanner) inBare(p []byte) (n int) {
	for n < len(p) && barely[p[n]] {
		n++
	}
	s.take(p[:n])
	if n < len(p) {
		s.endBare()
	}
	return n
}

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

var barely = func() (b [256]bool) {
	for c := range b {
		b[c] = !strings.ContainsRune(" \t\r\n,:[]{}\"", rune(c))
	}
	return b
}()

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
	if s.trait == isRef {
		s.size.state = true
	}
	s.target, s.key = nil, object
}

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
	s.length, s.base64, s.meter = 0, true, meter{}
}

func (s *scanner) take(part []byte) {
	if s.state != inBare && !s.key && (!s.onlyOutput || s.trait == isOutput) {
		s.measure(part)
	}
	s.length += len(part)
	if !s.key && (s.target == nil || s.target.is == 0) && s.trait != isAddress && s.trait != isTool && s.trait != isBlob {
		return
	}
	if len(s.text)+len(part) > maxText {
		s.cut, part = true, part[:maxText-len(s.text)]
	}
	s.text = append(s.text, part...)
}

func (s *scanner) measure(part []byte) {
	if s.trait == isBlob || s.trait == isAddress {
		if s.base64 && s.length >= 4*leastBlob {
			return // it is a file: its text is of no interest
		}
		for i := 0; i < len(part) && s.base64; i++ {
			s.base64 = inBase64[part[i]] || s.length+i < longestType && inType[part[i]]
		}
	}
	s.meter.write(part)
}

// longestType bounds "data:image/png;base64,".
const longestType = 100

var inBase64, inType = func() (b, t [256]bool) {
	for c := range b {
		b[c] = classOf[c] == lower || classOf[c] == upper || classOf[c] == digit
	}
	for _, c := range `+/=-_\` {
		b[c] = true
	}
	for _, c := range ":;,." {
		t[c] = true
	}
	return b, t
}()

func (s *scanner) endString() {
	s.state = outside
	if s.key {
		s.endKey()
		return
	}
	switch {
	case s.target != nil:
	case (s.trait == isBlob || s.trait == isAddress) && s.base64 && s.length >= leastBlob:
		s.size.blobs++
		s.size.blobTokens += tokensOfBlob(s.text, s.length)
	case s.onlyOutput && (s.trait != isOutput || s.length == 0):
	default:
		s.size.milli += s.meter.milli
		s.size.texts++
	}
	if !s.size.state {
		s.size.state = s.trait == isRef && s.length > 0 || s.trait == isAddress && isURL(s.text) ||
			s.trait == isTool && isServerTool(s.text)
	}
	s.tell(true)
}

func (s *scanner) endKey() {
	s.target, s.trait = nil, isText
	if s.cut {
		return
	}
	if s.depth >= 1 && s.depth <= maxShapes {
		if at := s.shapes[s.depth-1]; at != nil {
			s.target = at.fields[string(s.text)]
		}
	}
	s.trait = s.traits(s.text)
	if s.depth >= deepKey && !s.onlyOutput {
		s.size.milli += int64(s.length) * 1000 / bytesPerToken
	}
}

func (s *scanner) endBare() {
	s.state = outside
	if s.depth >= 2 && s.target == nil && len(s.text) == 0 { // a token of an input that is given in tokens
		s.size.milli += 1000
	}
	s.tell(false)
}

func (s *scanner) tell(quoted bool) {
	if s.target != nil && s.target.is != 0 {
		s.to.value(s.target.is, s.text, quoted)
	}
	s.target = nil
}
