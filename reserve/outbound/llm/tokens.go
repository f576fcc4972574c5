package llm

// meter estimates a JSON string's tokens. Prices are those of OpenAI's o200k_base: see bench/sdk/llm/tokens.
type meter struct {
	milli  int64 // thousandths of a token
	class  charClass
	escape int // 0: none; 1: after a backslash; 2 to 5: that many digits of \uXXXX, less one, are missing
	code   int // of \uXXXX
}

type charClass uint8

const (
	atStart charClass = iota
	lower
	upper
	digit
	space
	newline
	punct
	accent // a Latin letter beyond ASCII
	cyrillic
	greek // Hebrew, Armenian
	arabic
	indic // Thai, Lao, Tibetan
	cjk
	other // emoji
	follow
	backslash
	classes
)

// each is a character's price, begins the extra price of a run, in thousandths of a token.
var (
	each = [classes]int64{
		lower: 70, upper: 260, digit: 333, punct: 130, accent: 500, cyrillic: 170, greek: 320, arabic: 330, indic: 370,
		cjk: 780, other: 1100,
	}
	begins = [classes]int64{lower: 800, upper: 450, digit: 500, newline: 900, punct: 680, cyrillic: 600}
)

// classOf maps the first byte of a character in UTF-8.
var classOf = func() (t [256]charClass) {
	b := 0
	for _, r := range []struct {
		last int
		is   charClass
	}{
		{8, punct}, {9, space}, {10, newline}, {12, punct}, {13, newline}, {31, punct}, {' ', space}, {'/', punct},
		{'9', digit}, {'@', punct}, {'Z', upper}, {'[', punct}, {'\\', backslash}, {'`', punct}, {'z', lower}, {0x7f, punct},
		{0xbf, follow}, {0xcd, accent}, {0xcf, greek}, {0xd3, cyrillic}, {0xd7, greek}, {0xdf, arabic}, {0xe0, indic},
		{0xe1, accent}, {0xe2, punct}, {0xed, cjk}, {0xff, other},
	} {
		for ; b <= r.last; b++ {
			t[b] = r.is
		}
	}
	return t
}()

func (m *meter) write(p []byte) {
	for _, b := range p {
		c := classOf[b]
		if m.escape > 0 {
			c = m.unescape(b)
		} else if c == backslash {
			m.escape, c = 1, follow
		}
		if c == follow {
			continue
		}
		m.milli += each[c]
		if c != m.class && !(c == lower && m.class == upper) {
			m.milli += begins[c]
		}
		m.class = c
	}
}

// unescape returns what an escape sequence stands for; follow: it is incomplete.
func (m *meter) unescape(b byte) charClass {
	if m.escape == 1 {
		m.escape = 0
		switch b {
		case 'n', 'r':
			return newline
		case 't', 'b', 'f':
			return space
		case 'u':
			m.escape, m.code = 5, 0
			return follow
		}
		return punct
	}
	digit := int(b&15) + int(b>>6)*9 // of 0-9, A-F and a-f
	m.code = m.code<<4 | digit&15
	if m.escape--; m.escape > 1 {
		return follow
	}
	m.escape = 0
	switch c := m.code; {
	case c == '\\':
		return punct
	case c < 0x80:
		return classOf[c]
	case c < 0x800:
		return classOf[0xc0|c>>6]
	case c >= 0xd800 && c < 0xdc00: // the first half of a pair
		return other
	case c >= 0xdc00 && c < 0xe000:
		return follow
	default:
		return classOf[0xe0|c>>12]
	}
}
