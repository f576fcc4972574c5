package llm

import (
	"bytes"
	"strings"
)

// form says what a scanner looks for. (A decoder keeps whole strings, which may be files of many megabytes.)
type form struct {
	fields     map[string]field // by path
	traits     map[string]trait // by the last key
	onlyOutput bool             // it has keys of output, and only that counts as text
}

type field uint8

type trait uint8

const (
	isText    trait = iota
	isBlob          // an image or another file, if it is base64
	isRef           // the name of something that the server keeps or fetches
	isAddress       // such a name, if it is an address
	isTool          // such a name, if it is that of a tool that the provider runs
	isOutput        // text that a model has put out
)

// formOf takes keys with spaces between. A dot leads into an object.
func formOf(fields map[field]string, traits map[trait]string) *form {
	f := &form{fields: map[string]field{}, traits: map[string]trait{}}
	for is, paths := range fields {
		for path := range strings.FieldsSeq(paths) {
			f.fields[strings.ReplaceAll(path, ".", separator)] = is
		}
	}
	for is, keys := range traits {
		for key := range strings.FieldsSeq(keys) {
			f.traits[key] = is
			f.onlyOutput = f.onlyOutput || is == isOutput
		}
	}
	return f
}

type listener interface {
	// value gets a string as written between its quotes, or another literal. It must not keep text.
	value(is field, text []byte, quoted bool)
	// document ends a document, or an element of a list at the top.
	document()
}

// scanner finds fields in JSON that comes in pieces, and measures text. It does not validate.
type scanner struct {
	*form
	to     listener
	broken bool // what came is not JSON: the rest is ignored
	loose  bool // something came that is in no object or list

	state  state
	levels []level
	path   []byte // the keys that lead to a value
	key    bool   // the next string is a key
	field  field  // of the value that comes next; 0: of no interest
	trait  trait  // of the latest key
	text   []byte // the begin of a string or another literal
	length int    // bytes of it
	read   int    // bytes before what write has left
	end    int    // of the latest string, in what was read
	file   bool   // it is one, in base64
	meter  meter  // of it

	size size
}

type level struct {
	object bool
	path   int // bytes of the path that leads to it
}

type size struct {
	milli      int64 // thousandths of a token
	texts      int   // strings that counted
	blobs      int   // images, sounds and files, as base64
	blobTokens int
	state      bool // it refers to something that the server keeps
}

type state uint8

const (
	outside  state = iota // values
	inString              // or key
	inEscape              // after its backslash
	inBare                // a number or a literal
)

const (
	separator = "\x00"       // in a path
	maxPath   = 8            // keys
	maxLevels = 10_000       // as in encoding/json
	maxText   = 6 * maxModel // bytes of a value of interest: a name in escapes
	// Keys this deep belong to a tool's schema, which a model reads.
	deepKey = 6
	// A shorter string is text under any key.
	leastBlob = 256
)

func (s *scanner) reset() {
	*s = scanner{form: s.form, to: s.to, text: s.text[:0], levels: s.levels[:0], path: s.path[:0]}
}

func (s *scanner) whole() bool { return !s.broken && len(s.levels) == 0 && s.state == outside }

func (s *scanner) write(p []byte) {
	for len(p) > 0 && !s.broken {
		n := 1
		switch s.state {
		case inString:
			n = s.inString(p)
		case inEscape:
			s.take(p[:1])
			s.state = inString
		case inBare:
			n = s.upTo(p, " \t\r\n,:[]{}\"")
			if n < len(p) {
				s.endBare()
			}
		default:
			if s.structure(p[0]); s.state == inBare {
				n = 0
			}
		}
		s.read += n
		p = p[n:]
	}
}

// upTo takes what comes before one of some characters.
func (s *scanner) upTo(p []byte, chars string) (n int) {
	if n = bytes.IndexAny(p, chars); n < 0 {
		n = len(p)
	}
	s.take(p[:n])
	return n
}

func (s *scanner) inString(p []byte) int {
	n := s.upTo(p, `"\`)
	switch {
	case n == len(p):
		return n
	case p[n] == '"':
		s.end = s.read + n
		s.endString()
	default:
		s.take(p[n : n+1])
		s.state = inEscape
	}
	return n + 1
}

func (s *scanner) structure(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '{', '[':
		s.push(c == '{')
	case '}', ']':
		s.pop(c == '}')
	case ',':
		s.field, s.key = 0, s.inObject()
	case ':':
		s.key = false
	case '"':
		s.begin(inString)
	default:
		s.begin(inBare)
	}
}

func (s *scanner) inObject() bool {
	n := len(s.levels)
	return n > 0 && s.levels[n-1].object
}

// isDocument reports whether a value is one: at the top, or in a list there.
func (s *scanner) isDocument() bool { return len(s.levels) == 0 || len(s.levels) == 1 && !s.inObject() }

func (s *scanner) push(object bool) {
	if s.isDocument() {
		s.path = s.path[:0]
	} else if !s.inObject() {
		s.path = append(s.path[:s.levels[len(s.levels)-1].path], '[') // nothing in a list is of interest
	}
	if len(s.levels) == maxLevels {
		s.broken = true
		return
	}
	s.levels = append(s.levels, level{object, len(s.path)})
	s.size.state = s.size.state || s.trait == isRef
	s.field, s.key = 0, object
}

func (s *scanner) pop(object bool) {
	if len(s.levels) == 0 || s.inObject() != object {
		s.broken = true
		return
	}
	s.levels = s.levels[:len(s.levels)-1]
	s.field, s.key = 0, false
	if s.isDocument() {
		s.to.document()
	}
}

func (s *scanner) begin(state state) {
	s.loose = s.loose || len(s.levels) == 0
	s.state, s.text, s.length, s.file, s.meter = state, s.text[:0], 0, false, meter{}
}

func (s *scanner) take(part []byte) {
	s.text = append(s.text, part[:min(len(part), maxText-len(s.text))]...)
	s.length += len(part)
	if s.state == inBare || s.key || s.onlyOutput && s.trait != isOutput {
		return
	}
	if !s.file {
		s.meter.write(part)
		s.file = s.length >= leastBlob && (s.trait == isBlob || s.trait == isAddress) && isBase64(s.text)
	}
}

func (s *scanner) endString() {
	s.state = outside
	switch {
	case s.key:
		s.endKey()
		return
	case s.field != 0:
	case s.file:
		s.size.blobs++
		s.size.blobTokens += tokensOfBlob(string(s.text), s.length)
	case !s.onlyOutput || s.trait == isOutput && s.length > 0:
		s.size.milli += s.meter.milli
		s.size.texts++
	}
	s.size.state = s.size.state || s.trait == isRef && s.length > 0 ||
		s.trait == isAddress && isURL(s.text) || s.trait == isTool && serverTools.Match(s.text)
	s.tell(true)
}

func (s *scanner) endKey() {
	s.field, s.trait = 0, s.traits[string(s.text)]
	if n := len(s.levels); n > 0 && n <= maxPath && s.length <= maxText {
		if s.path = s.path[:s.levels[n-1].path]; len(s.path) > 0 {
			s.path = append(s.path, separator...)
		}
		s.path = append(s.path, s.text...)
		s.field = s.fields[string(s.path)]
	}
	if len(s.levels) >= deepKey && !s.onlyOutput {
		s.size.milli += int64(s.length) * 1000 / bytesPerToken
	}
}

func (s *scanner) endBare() {
	s.state = outside
	if len(s.levels) >= 2 && s.field == 0 { // a token of an input that is given in tokens
		s.size.milli += 1000
	}
	s.tell(false)
}

func (s *scanner) tell(quoted bool) {
	if s.field != 0 {
		s.to.value(s.field, s.text, quoted)
	}
	s.field = 0
}
