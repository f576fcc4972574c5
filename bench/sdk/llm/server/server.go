package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Server is an http.Handler, which holds each credential to a quota for each model. It is safe
// for concurrent use.
type Server struct {
	mux   *http.ServeMux
	quota Quota

	mu       sync.Mutex
	accounts map[[2]string]*account // by credential and model
	calls    []*call
}

// New returns a server that allows so much.
func New(q Quota) *Server {
	s := &Server{mux: http.NewServeMux(), quota: q, accounts: map[[2]string]*account{}}
	for _, path := range []string{"/v1", "/openai/deployments/{model}", "/openai/v1"} {
		headers, refuse := openAIHeaders, refuseOpenAI
		if strings.HasPrefix(path, "/openai") {
			headers, refuse = azureHeaders, refuseAzure
		}
		s.handle(path+"/chat/completions", format{parseChat, headers, refuse, answerChat, streamChat})
		s.handle(path+"/responses", format{parseResponses, headers, refuse, answerResponses, streamResponses})
		s.handle(path+"/embeddings", format{parseEmbeddings, headers, refuse, answerEmbeddings, nil})
	}
	s.handle("/v1/messages", format{parseMessages, anthropicHeaders, refuseAnthropic, answerMessages, streamMessages})
	s.handle("/v1beta/models/{call}", format{parseGemini, nil, refuseGemini, answerGemini, streamGemini})
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// A format is how a provider says what.
type format struct {
	parse   func(c *call, r *http.Request, body object)
	headers func(h http.Header, meters []*meter, now time.Time) // may be nil
	refuse  func(w http.ResponseWriter, c *call, why *refusal)
	answer  func(c *call) object
	stream  func(e *events, c *call)
}

// A call is one that the server has got.
type call struct {
	model, credential string
	prompt, cached    int // tokens
	counted           int // tokens of the prompt that limits count
	most              int // tokens of the reply, as the caller limits it; 0: not said
	reply             int // tokens of the reply
	streamed, usage   bool
	inputs            int // texts to be embedded
	orders            Orders

	at      time.Time
	charges []*charge
	refused string // by which limit
	larger  bool   // than could ever be allowed
	made    int    // tokens of the reply
	used    int
}

type object = map[string]any

// read takes from a prompt what it says, and the reply's tokens from that.
func (c *call) read(prompt string) {
	c.prompt, c.orders = Tokens(prompt), read(prompt)
	c.cached, c.counted = min(c.orders.Cached, c.prompt), c.prompt
	c.reply = c.orders.Reply
	if c.most > 0 {
		c.reply = min(c.reply, c.most)
	}
}

// number returns the first of some fields that is a number, or 0.
func number(o object, fields ...string) int {
	for _, f := range fields {
		if n, ok := o[f].(float64); ok {
			return int(n)
		}
	}
	return 0
}

// cut reports whether the reply is as long as the caller wants it at most.
func (c *call) cut() bool { return c.most > 0 && c.reply == c.most }

func (s *Server) handle(path string, f format) {
	s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		var o object
		if err := json.Unmarshal(body, &o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c := &call{credential: credential(r)}
		c.model, _ = o["model"].(string)
		c.streamed, _ = o["stream"].(bool)
		f.parse(c, r, o)
		a, why := s.admit(c, w.Header(), f)
		if why != nil {
			f.refuse(w, c, why)
			return
		}
		made := 0
		defer func() { s.settle(a, c, made) }()
		if !c.streamed {
			if !pause(r.Context(), c.orders.Takes) || c.orders.Breaks > 0 {
				panic(http.ErrAbortHandler)
			}
			made = c.reply
			// It is settled before its last byte goes, so that a client that has read it all finds
			// it settled.
			s.settle(a, c, made)
			writeJSON(w, http.StatusOK, f.answer(c))
			return
		}
		e := &events{w: w, ctx: r.Context(), c: c, made: &made, settle: func() { s.settle(a, c, made) }}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		f.stream(e, c)
	})
}

// admit charges a call, or says why not, and says in the header what is left.
func (s *Server) admit(c *call, h http.Header, f format) (*account, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{c.credential, c.model}
	a := s.accounts[key]
	if a == nil {
		a = newAccount(s.quota)
		s.accounts[key] = a
	}
	c.at = time.Now()
	s.calls = append(s.calls, c)
	why := a.admit(c.at, c)
	if why != nil {
		c.refused, c.larger = why.limit, why.larger
	}
	if f.headers != nil {
		f.headers(h, a.meters, c.at)
	}
	return a, why
}

// settle records how many tokens the reply has. The last time counts.
func (s *Server) settle(a *account, c *call, made int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.made, c.used = made, c.counted+made
	a.settle(time.Now(), c, made)
}

// credential returns what a request says of its caller.
func credential(r *http.Request) string {
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header.Get(name); v != "" {
			return v
		}
	}
	return r.URL.Query().Get("key")
}

// pause waits, and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func writeJSON(w http.ResponseWriter, status int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(o)
}
