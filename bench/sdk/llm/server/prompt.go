package server

import (
	"encoding/json"
	"strings"
	"time"
)

// A token is four bytes of text, for this server.
const tokenBytes = 4

// Orders are what a prompt can ask for.
type Orders struct {
	Reply  int           `json:",omitempty"` // tokens of the reply, which max_tokens limits; default: 16
	Chunks int           `json:",omitempty"` // how many pieces a stream comes in; default: 4
	Takes  time.Duration `json:",omitempty"` // how long the reply takes, from its beginning to its end
	Breaks int           `json:",omitempty"` // the piece before which the connection breaks; 0: none
}

// Prompt returns a prompt that has the server reply as ordered. It has the tokens that are wanted, or as many as its
// orders need.
func Prompt(tokens int, o Orders) string {
	orders, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has numbers only
	}
	missing := max(0, tokens*tokenBytes-len(orders))
	return string(orders) + strings.Repeat("why ", missing/tokenBytes+1)[:missing]
}

// read returns the orders that a prompt begins with.
func read(prompt string) Orders {
	o := Orders{Reply: 16, Chunks: 4}
	_ = json.NewDecoder(strings.NewReader(prompt)).Decode(&o) // a prompt without orders gets the default
	return o
}

// Tokens returns the tokens of a text.
func Tokens(text string) int { return (len(text) + tokenBytes - 1) / tokenBytes }

// reply returns a text with that number of tokens.
func reply(tokens int) string { return strings.Repeat("so, ", tokens) }

// text returns what is text in a prompt, which is a string, or a list, or an object, and so on, as each provider has
// it.
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
