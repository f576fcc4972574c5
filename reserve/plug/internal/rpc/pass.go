package rpc

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve/inbound"
)

// A Refusal is what a middleware has said instead of letting a call pass.
type Refusal struct {
	Code  uint32        // see Pass
	After time.Duration // the client is not to come back before; 0: it has left, or no wait helps
	Text  string
	Quota http.Header // see Pass
}

// Pass has a middleware decide about a call. If that passes, serve is called, with the headers that
// say what is left: RateLimit, and those like it. Otherwise the refusal is returned: ResourceExhausted
// for 429, Unavailable for 503, Unauthenticated for 401, and InvalidArgument for 413, which no
// client tries again.
func Pass(m *inbound.Middleware, r *http.Request, serve func(quota http.Header)) *Refusal {
	r.Header.Set("Accept", "text/plain") // for the text of a refusal
	w := &writer{header: http.Header{}}
	passed := false
	m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		passed = true
		serve(quota(w.header))
	})).ServeHTTP(w, r)
	if passed {
		return nil
	}
	f := &Refusal{Code: ResourceExhausted, Text: strings.TrimSpace(string(w.body)), Quota: quota(w.header)}
	switch w.status {
	case http.StatusServiceUnavailable:
		f.Code = Unavailable
	case http.StatusUnauthorized:
		f.Code = Unauthenticated
	case http.StatusRequestEntityTooLarge:
		f.Code = InvalidArgument
	}
	seconds, _ := strconv.Atoi(w.header.Get("Retry-After")) // at most a year
	f.After = time.Duration(seconds) * time.Second
	return f
}

func quota(all http.Header) http.Header {
	some := http.Header{}
	for name, values := range all {
		if strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Ratelimit") {
			some[name] = values
		}
	}
	return some
}

// writer keeps a response, and of its body no more than a text of an error should have.
type writer struct {
	header http.Header
	status int
	body   []byte
}

const longestText = 1 << 10

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) { w.status = status }

func (w *writer) Write(p []byte) (int, error) {
	w.body = append(w.body, p[:min(len(p), longestText-len(w.body))]...)
	return len(p), nil
}
