package llm

// A meter estimates how many tokens a text has. It cuts the text as tokenizers do before they merge: into words,
// numbers of three digits, runs of punctuation and runs of white space. What each costs is fitted to o200k_base, the
// tokenizer of OpenAI's models since GPT-4o. For each kind of text, bench/sdk/llm/tokens measures how far off it is.
//
// The text is a string of JSON as it is written between its quotes, in pieces. A meter keeps nothing of it.
type meter struct {
	milli int64 // thousandths of a token, of all runs that have ended

	class   charClass
	run     int  // characters of the run
	upper   int  // of the word, its capital letters
	foreign int  // of the word, its letters with an accent
	spaced  bool // a space stands before the run
	glued   bool // one character of punctuation stands before the word, and belongs to it
	same    int  // of a run of punctuation: characters that repeat the one before
	last    byte
	escape  int // 0: none; 1: after a backslash; 2 to 5: that many digits of \uXXXX, less one, are missing
	code    int // of \uXXXX
}

// A charClass is what kind of character one is.
type charClass uint8

const (
	atStart charClass = iota
	lower
	upper
	digit
	space
	newline
	punct
	accent   // a Latin letter beyond ASCII
	cyrillic // and Greek, Hebrew, Armenian
	arabic
	indic // and Thai, Lao, Tibetan
	kana
	han
	hangul
	other // symbols, emoji
	follow
	backslash
	classes
)

// perCharacter is what a character of a script costs that has no words of its own here.
var perCharacter = [classes]int64{arabic: 350, indic: 420, kana: 740, han: 790, hangul: 740, other: 1100}

var classOf = func() (t [256]charClass) {
	for b := range t {
		switch {
		case b == '\\':
			t[b] = backslash
		case b >= 'a' && b <= 'z':
			t[b] = lower
		case b >= 'A' && b <= 'Z':
			t[b] = upper
		case b >= '0' && b <= '9':
			t[b] = digit
		case b == ' ' || b == '\t':
			t[b] = space
		case b == '\n' || b == '\r':
			t[b] = newline
		case b < 0x80:
			t[b] = punct
		case b < 0xc0:
			t[b] = follow
		case b <= 0xcd:
			t[b] = accent
		case b <= 0xd7:
			t[b] = cyrillic
		case b <= 0xdf:
			t[b] = arabic
		case b == 0xe0:
			t[b] = indic
		case b == 0xe1:
			t[b] = accent // Latin Extended Additional: Vietnamese
		case b == 0xe2:
			t[b] = punct // quotation marks, dashes
		case b == 0xe3:
			t[b] = kana
		case b <= 0xe9:
			t[b] = han
		case b <= 0xed:
			t[b] = hangul
		default:
			t[b] = other
		}
	}
	return t
}()

// classOfCode returns the class of a character that was written as \uXXXX.
func classOfCode(c int) charClass {
	var lead int
	switch {
	case c < 0x80:
		return classOf[c]
	case c < 0x800:
		lead = 0xc0 | c>>6
	case c >= 0xdc00 && c < 0xe000: // the second half of a pair
		return follow
	case c >= 0xd800 && c < 0xdc00:
		return other
	default:
		lead = 0xe0 | c>>12
	}
	return classOf[lead]
}

// write takes a piece of the text.
func (m *meter) write(p []byte) {
	for i := 0; i < len(p); i++ {
		b := p[i]
		c := classOf[b]
		if m.escape > 0 {
			if b, c = m.unescape(b); c == follow {
				continue
			}
		}
		switch {
		case c == lower && (m.class == lower || m.class == upper):
			begin := i
			for i++; i < len(p) && classOf[p[i]] == lower; i++ {
			}
			m.class = lower
			m.run += i - begin
			i--
		case c == follow:
		case c == backslash:
			m.escape = 1
		case c == m.class && c == digit:
			m.run++
		default:
			m.turn(c, b)
		}
	}
}

// unescape takes a character of an escape sequence. Until that is complete it returns follow.
func (m *meter) unescape(b byte) (byte, charClass) {
	if m.escape == 1 {
		m.escape = 0
		switch b {
		case 'n', 'r':
			return '\n', newline
		case 't', 'b', 'f':
			return ' ', space
		case 'u':
			m.escape, m.code = 5, 0
			return b, follow
		}
		return b, punct
	}
	digit := int(b | 0x20)
	if digit >= 'a' {
		digit -= 'a' - 10
	} else {
		digit = int(b) - '0'
	}
	m.code = m.code<<4 | digit&15
	if m.escape--; m.escape > 1 {
		return b, follow
	}
	m.escape = 0
	c := classOfCode(m.code)
	if c == backslash {
		c = punct
	}
	return byte(m.code), c
}

// turn takes a character that may end the run before it.
func (m *meter) turn(c charClass, b byte) {
	switch {
	case c == m.class && c != upper:
		m.run++
		if c == punct && b == m.last {
			m.same++
		}
		m.last = b
		return
	case c == upper && m.class == upper:
		m.run++
		m.upper++
		return
	case c == accent && (m.class == lower || m.class == upper):
		m.class = lower
		m.run++
		m.foreign++
		return
	case c == lower && m.class == accent:
		m.class, m.foreign = lower, m.run
		m.run++
		return
	}
	spaced := m.class == space
	glued := m.class == punct && m.run == 1
	if glued && isWord(c) {
		spaced = m.spaced
	}
	m.flush(c)
	m.class, m.run, m.upper, m.foreign, m.same, m.last = c, 1, 0, 0, 0, b
	m.spaced, m.glued = spaced, glued && isWord(c)
	if c == upper {
		m.upper = 1
	}
}

func isWord(c charClass) bool { return c == lower || c == upper || c == accent || c == cyrillic }

// flush adds what the run costs, before a character of class next.
func (m *meter) flush(next charClass) {
	n := int64(m.run)
	switch m.class {
	case lower, upper, accent:
		m.milli += m.word(n)
	case cyrillic:
		m.milli += 950 + max(0, n-4)*210
	case digit:
		m.milli += (n + 2) / 3 * 1000
	case space:
		switch {
		case n > 1:
			m.milli += 1000
		case next == digit:
			m.milli += 1000
		case next == newline || next == atStart:
			m.milli += 300
		}
	case newline:
		m.milli += 800
	case punct:
		switch {
		case n == 1 && isWord(next):
			m.milli += 450
		default:
			different := n - int64(m.same)
			m.milli += 900 + max(0, different-2)*330 + int64(m.same)*60
		}
	default:
		m.milli += n * perCharacter[m.class]
	}
}

// word returns what a word costs that has n letters.
func (m *meter) word(n int64) int64 {
	capitals := int64(m.upper)
	if m.class == accent {
		m.foreign = m.run
	}
	cost := int64(1000)
	if m.foreign > 0 {
		cost += 250 + max(0, n-5)*150
	} else {
		cost += max(0, n-7) * 130
	}
	if capitals > 1 && m.spaced {
		cost += (capitals - 1) * 330
	} else if capitals > 1 {
		cost += (capitals - 1) * 480
	}
	if !m.spaced && !m.glued && n > 3 {
		cost += 250
	}
	return cost
}

// end ends the text.
func (m *meter) end() {
	if m.class != atStart {
		m.flush(atStart)
	}
	*m = meter{milli: m.milli}
}
