package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

// A Quota is what a server allows in any minute. 0 is no limit.
type Quota struct {
	Requests, Tokens, InputTokens, OutputTokens int
	Minute                                      time.Duration // default: a minute
	// Bucket has token buckets count, which are full at the start and let up to twice as much through in the first minute.
	// Default: exact windows.
	Bucket bool
}

// An API is how a provider speaks.
type API struct {
	dialect func(q Quota) pacetest.Dialect
	formats map[string]format // by path
	// kept has the prompt and max_tokens charged for good. Otherwise a call is charged what it came to once it has ended.
	kept bool
	// requests is the share of a minute over which requests are counted.
	requests float64
}

// A format is how a provider answers calls of one path.
type format struct {
	parse  func(c *call, r *http.Request, body object)
	answer func(c *call) object
	stream func(e *events, c *call) // nil: it has no streams
}

type object = map[string]any

// A Server is an http.Handler. All methods may be called at the same time.
type Server struct {
	mux    *http.ServeMux
	api    API
	names  []string // of the limits of tokens
	limits *pacetest.Server

	mu sync.Mutex // guards what calls have made
}

// A call is one that the server got.
type call struct {
	format   format
	model    string
	prompt   int // tokens
	most     int // tokens of the reply, as the caller limits it; 0: it does not
	reply    int // tokens of the reply
	inputs   int // texts to be embedded
	streamed bool
	usage    bool // the stream is to tell it
	orders   Orders
	created  int64 // seconds since 1970

	made int // tokens of the reply so far
}

type callKey struct{}

// New returns a server that speaks as a provider does, and allows what the quota says.
func New(api API, q Quota) *Server {
	if q.Minute == 0 {
		q.Minute = time.Minute
	}
	s := &Server{mux: http.NewServeMux(), api: api}
	rule := func(n int, share float64) pacetest.Rule {
		per := time.Duration(share * float64(q.Minute))
		n = int(share * float64(n))
		switch {
		case n == 0:
			return pacetest.Unlimited()
		case q.Bucket:
			return pacetest.Bucket(reserve.Per(float64(n), per), n)
		}
		return pacetest.Window(n, per)
	}
	opts := []pacetest.Option{pacetest.WithDialect(api.dialect(q)), pacetest.WithHandler(http.HandlerFunc(s.answer))}
	for _, l := range []struct {
		name string
		n    int
	}{{"tokens", q.Tokens}, {"input-tokens", q.InputTokens}, {"output-tokens", q.OutputTokens}} {
		if l.n > 0 {
			s.names = append(s.names, l.name)
			opts = append(opts, pacetest.WithLimit(l.name, rule(l.n, 1), func(r *http.Request) int {
				c := callOf(r)
				return c.cost(l.name, c.most)
			}))
		}
	}
	s.limits = reserve.Must(pacetest.New(rule(q.Requests, api.requests), opts...))
	for path, f := range api.formats {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, f) })
	}
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serve reads a call, and has the limits let it in or refuse it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, f format) {
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := &call{format: f, created: time.Now().Unix()}
	c.model, _ = body["model"].(string)
	c.streamed, _ = body["stream"].(bool)
	f.parse(c, r, body)
	s.limits.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// answer answers a call that was let in.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	if c.streamed {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		defer s.settle(r)
		c.format.stream(&events{w: w, r: r, c: c, s: s}, c)
		return
	}
	if !pause(r.Context(), c.orders.Takes) || c.orders.Breaks > 0 {
		s.settle(r)
		panic(http.ErrAbortHandler)
	}
	s.make(c, c.reply)
	s.settle(r) // before the last byte goes, so that a client that has read it all finds the call settled
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(c.format.answer(c))
}

// make notes how many tokens of a reply there are.
func (s *Server) make(c *call, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.made = tokens
}

// settle charges a call what it came to, if the provider does that.
func (s *Server) settle(r *http.Request) {
	if s.api.kept {
		return
	}
	for _, name := range s.names {
		pacetest.Settle(r, name, callOf(r).cost(name, callOf(r).made))
	}
}

// cost returns what a call takes of a limit, by the tokens of its reply.
func (c *call) cost(limit string, reply int) int {
	switch limit {
	case "input-tokens":
		return c.prompt
	case "output-tokens":
		return reply
	default:
		return c.prompt + reply
	}
}

// read takes from a prompt what it orders, and the reply's tokens from that.
func (c *call) read(prompt string) {
	c.prompt, c.orders = Tokens(prompt), read(prompt)
	c.reply = c.orders.Reply
	if c.most > 0 {
		c.reply = min(c.reply, c.most)
	}
}

// finish says why a reply ended: one word if it is as long as the caller allows, another if not.
func (c *call) finish(cut, complete string) string {
	if c.most > 0 && c.reply == c.most {
		return cut
	}
	return complete
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

// pause waits, and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// A Record is what became of a call, in tokens.
type Record struct {
	At            time.Time
	Refused       bool
	Asked         int // prompt and max_tokens
	Prompt, Reply int // that were used
}

// Used is what the call used.
func (r Record) Used() int { return r.Prompt + r.Reply }

// Records returns those of all calls, in their order.
func (s *Server) Records() (all []Record) {
	calls := s.limits.Calls()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, made := range calls {
		c := callOf(made.Request)
		r := Record{At: made.At, Refused: !made.Accepted, Asked: c.prompt + c.most}
		if made.Accepted {
			r.Prompt, r.Reply = c.prompt, c.made
		}
		all = append(all, r)
	}
	return all
}

// Counts are sums over all calls. Those of tokens are of the calls that were answered.
type Counts struct{ Answered, Refused, Asked, Prompt, Reply int }

// Counts returns the sums.
func (s *Server) Counts() (sum Counts) {
	for _, r := range s.Records() {
		if r.Refused {
			sum.Refused++
			continue
		}
		sum.Answered++
		sum.Asked += r.Asked
		sum.Prompt += r.Prompt
		sum.Reply += r.Reply
	}
	return sum
}
