package llm

import (
	"strconv"
)

// The fields of a usage.
const (
	ofInput field = iota + 1
	ofCacheWrite
	ofOutput
	ofThought
	ofTotal
	usageFields
)

// A count is what a response says was used.
type count struct {
	input, output int
	known         bool
}

// A counter finds the usage in the documents of a response: the body, or each event of a stream.
type counter struct {
	scan       scanner
	cumulative bool
	ignored    *ignored
	text       [64]byte // of scan

	has    [usageFields]bool // in this document
	said   [usageFields]int  // in this document
	bad    reason            // of a number in it; 0: none
	fields [usageFields]int  // the last ones of all documents that count
	count  count
}

func (c *counter) begin(p *preset, ignored *ignored) {
	c.scan.shape, c.scan.to, c.scan.text = p.usage, c, c.text[:0]
	c.cumulative, c.ignored = p.cumulative, ignored
}

func (c *counter) value(is field, text []byte, quoted bool) {
	if string(text) == "null" && !quoted {
		return
	}
	n, bad := tokensOf(text)
	if quoted && bad == 0 {
		bad = broken
	}
	if bad != 0 {
		c.bad = bad
		return
	}
	c.has[is], c.said[is] = true, n
}

func (c *counter) noneYet() bool { return c.has == [usageFields]bool{} }

// tokensOf reads a number of tokens.
func tokensOf(text []byte) (n int, bad reason) {
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil && f == 0 || f != f:
		return 0, broken
	case f < 0:
		return 0, negative
	case f > maxTokens:
		return 0, absurd
	case f != float64(int(f)):
		return 0, broken
	}
	return int(f), 0
}

// document takes over the usage of a document that is complete. One with a number that can't be
// right is ignored.
func (c *counter) document() {
	switch {
	case c.bad != 0:
		c.ignored.add(c.bad)
	case !c.noneYet():
		c.take()
	}
	c.has, c.bad = [usageFields]bool{}, 0
}

func (c *counter) take() {
	f := &c.fields
	if !c.cumulative {
		*f = [usageFields]int{}
		if c.count.known {
			c.ignored.add(repeated) // the one before it
		}
	}
	for is, has := range c.has {
		if has {
			f[is] = c.said[is]
		}
	}
	c.count.input, c.count.output = f[ofInput]+f[ofCacheWrite], f[ofOutput]+f[ofThought]
	if rest := f[ofTotal] - c.count.input - c.count.output; rest > 0 && c.has[ofTotal] {
		if c.count.input == 0 && c.count.output == 0 {
			c.count.input = rest // nothing but a total
		} else {
			c.count.output += rest
		}
	}
	c.count.known = true
}
