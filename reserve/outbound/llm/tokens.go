package llm

import "unicode/utf8"

// meter estimates a JSON string's tokens.
type meter struct {
	milli  int64 // thousandths of a token
	escape int   // 0: none; 1: after a backslash; 2 to 5: that many digits of \uXXXX, less one, are missing
	code   rune  // of \uXXXX
}

// prices are a character's, by its first byte in UTF-8, in thousandths of a token, fitted to OpenAI's o200k_base: see
// bench/sdk/llm/tokens.
var prices = func() (t [256]int64) {
	b := 0
	for _, r := range []struct {
		last  int
		price int64
	}{
		{31, 600}, {' ', 0}, {'/', 200}, {'9', 750}, {'@', 200}, {'Z', 420}, {'`', 200}, {'z', 340}, {0x7f, 200},
		{0xbf, 0}, {0xcd, 190}, // in a letter; Latin with accents
		{0xcf, 450}, {0xd3, 350}, {0xdf, 450}, // Greek; Cyrillic; Hebrew, Arabic
		{0xe0, 420}, {0xe1, 490}, {0xe2, 500}, {0xef, 870}, {0xff, 1440}, // Indic; Vietnamese; signs; Chinese; emoji
	} {
		for ; b <= r.last; b++ {
			t[b] = r.price
		}
	}
	return t
}()

func (m *meter) write(p []byte) {
	for _, b := range p {
		switch {
		case m.escape > 0:
			m.unescape(b)
		case b == '\\':
			m.escape = 1
		default:
			m.milli += prices[b]
		}
	}
}

func (m *meter) unescape(b byte) {
	if m.escape == 1 {
		m.escape = 0
		switch b {
		case 'u':
			m.escape, m.code = 5, 0
		case '"', '\\', '/':
			m.milli += prices[b]
		default:
			m.milli += prices['\n']
		}
		return
	}
	m.code = m.code<<4 | rune(b&15) + rune(b>>6)*9 // of 0-9, A-F and a-f
	if m.escape--; m.escape == 1 {
		m.escape = 0
		var text [utf8.UTFMax]byte
		utf8.EncodeRune(text[:], m.code) // half of a surrogate pair counts as a Chinese character
		m.milli += prices[text[0]]
	}
}
