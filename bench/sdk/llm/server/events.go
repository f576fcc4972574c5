package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Events writes a stream of server-sent events.
type events struct {
	w http.ResponseWriter
	r *http.Request
	c *call
	s *Server
}

// send writes an event. One without a name has only data.
func (e *events) send(name string, data object) {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	e.sendText(name, string(b))
}

// sendText is send with data that is text.
func (e *events) sendText(name, data string) {
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", data)
	if err := http.NewResponseController(e.w).Flush(); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

// chunks calls send for each piece of the reply, at its time, with its text and the tokens up to then.
func (e *events) chunks(send func(piece string, tokens int)) {
	n := max(1, min(e.c.orders.Chunks, e.c.reply))
	before := 0
	for i := range n {
		if i+1 == e.c.orders.Breaks || !pause(e.r.Context(), e.c.orders.Takes/time.Duration(n)) {
			panic(http.ErrAbortHandler)
		}
		tokens := e.c.reply * (i + 1) / n
		e.s.make(e.c, tokens)
		if i == n-1 {
			e.s.settle(e.r) // before the last event, so that a client that has read it finds the call settled
		}
		send(reply(tokens-before), tokens)
		before = tokens
	}
}
