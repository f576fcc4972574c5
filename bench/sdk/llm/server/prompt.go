package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A token is four bytes of text, for this server.
const tokenBytes = 4

// Orders are what a prompt can ask for.
type Orders struct {
	// Reply is the tokens of the reply, which max_tokens limits. Default: 16.
	Reply int
	// Chunks is how many pieces the reply comes in, as a stream. Default: 4.
	Chunks int
	// Takes is how long the reply takes, from first to last.
	Takes time.Duration
	// Cached is how many tokens of the prompt were cached before.
	Cached int
	// Breaks is the piece before which the connection breaks; 0: none.
	Breaks int
}

// Prompt returns a prompt of so many tokens, or a little more if it has to, which has the server
// reply as ordered.
func Prompt(tokens int, o Orders) string {
	var b strings.Builder
	for _, order := range []struct {
		name  string
		value int
	}{
		{"reply", o.Reply}, {"chunks", o.Chunks}, {"takes", int(o.Takes / time.Millisecond)}, {"cached", o.Cached}, {"breaks", o.Breaks},
	} {
		if order.value != 0 {
			fmt.Fprintf(&b, "[%s %d]", order.name, order.value)
		}
	}
	if missing := tokens*tokenBytes - b.Len(); missing > 0 {
		b.WriteString(strings.Repeat("why ", missing/tokenBytes+1)[:missing])
	}
	return b.String()
}

var order = regexp.MustCompile(`\[(reply|chunks|takes|cached|breaks) (\d+)\]`)

// read finds the orders in a prompt.
func read(prompt string) Orders {
	o := Orders{Reply: 16, Chunks: 4}
	for _, found := range order.FindAllStringSubmatch(prompt, -1) {
		n, err := strconv.Atoi(found[2])
		if err != nil {
			continue
		}
		switch found[1] {
		case "reply":
			o.Reply = n
		case "chunks":
			o.Chunks = n
		case "takes":
			o.Takes = time.Duration(n) * time.Millisecond
		case "cached":
			o.Cached = n
		case "breaks":
			o.Breaks = n
		}
	}
	return o
}

// Tokens returns the tokens of a text.
func Tokens(text string) int { return (len(text) + tokenBytes - 1) / tokenBytes }

// reply returns a text of so many tokens.
func reply(tokens int) string { return strings.Repeat("so, ", tokens) }

// text returns what is text in a prompt, which is a string, or a list, or an object, and so on, as
// each provider likes it.
func text(prompt any) string {
	switch p := prompt.(type) {
	case string:
		return p
	case []any:
		var b strings.Builder
		for _, part := range p {
			b.WriteString(text(part))
		}
		return b.String()
	case map[string]any:
		return text(p["content"]) + text(p["text"]) + text(p["parts"])
	default:
		return ""
	}
}
