package reply

import (
	"bytes"
	"math"
	"net/http"
	"regexp"
	"strings"
	"time"
)

type body struct {
	of    *http.Response
	clock clock
	begin []byte
	ready bool
}

func (b *body) text() []byte {
	if !b.ready && b.of.Body != nil {
		b.begin = unpacked(peek(b.of), get(b.of.Header, "Content-Encoding"))
	}
	b.ready = true
	return b.begin
}

func (r *Reader) hear(b *body, s *Reply) {
	forbidden := b.of.StatusCode == http.StatusForbidden
	sign := r.sign(b, s.Refused || forbidden)
	if sign != nil {
		s.Refused, s.Final, s.Penalty = true, sign.Final, sign.After
		s.NotRate = s.NotRate || sign.NotRate
	}
	if s.Refused || forbidden {
		r.body(b, s)
	}
	for i := range s.Limits { // a query costs more than is left
		if l := &s.Limits[i]; l.Ends > 0 && sign != nil && sign.asks && sign.After == 0 && !s.Told {
			*l = Limit{Name: l.Name, Size: l.Size, Stop: l.Ends, Ends: l.Ends, Undated: l.Undated}
		}
	}
}

// sign returns the first sign that is there. Without a status it is in a refusal, or a 403.
func (r *Reader) sign(b *body, refused bool) *Sign {
	host := ""
	if b.of.Request != nil {
		host = b.of.Request.URL.Hostname()
	}
	signs := r.signs
	if b.of.StatusCode == http.StatusOK && !refused { // fast path
		signs = r.at200
	}
	for _, sign := range signs {
		is := (sign.Status != 0 || sign.Body == "" || refused) && sign.on(b, host)
		if is && sign.asks {
			_, is = sign.dialect.Body(b.of, b.text())
		}
		if is {
			return sign.Sign
		}
	}
	return nil
}

func (s *Sign) on(b *body, host string) bool {
	h, r := b.of.Header, b.of.Request
	switch { // what does not hold
	case s.Status != 0 && s.Status != b.of.StatusCode:
	case s.Host != "" && !isAt(host, s.Host):
	case s.Path != "" && (r == nil || !strings.HasSuffix(r.URL.Path, s.Path)):
	case s.Header != "" && (len(h[s.Header]) == 0 || !strings.Contains(h[s.Header][0], s.Value)):
	case s.untold && (get(h, "Retry-After") != "" || get(h, "Anthropic-Ratelimit-Unified-Reset") != "" ||
		get(h, "X-Should-Retry") == "true" || passing.Match(b.text())):
	case s.small && strings.Contains(strings.ToLower(get(h, "Grpc-Message")), "larger than"):
	case s.Body != "":
		return bytes.Contains(b.text(), []byte(s.Body))
	default:
		return s.Header != "" || s.Status != 0
	}
	return false
}

// passing is what Anthropic says of limits that have room again soon.
var passing = regexp.MustCompile(`minute|concurrent`)

// isAt reports whether a host is another, or below it.
func isAt(name, host string) bool {
	below := len(name) - len(host)
	return strings.HasSuffix(name, host) && (below == 0 || name[below-1] == '.')
}

func (r *Reader) body(b *body, s *Reply) {
	for i := range r.dialects {
		d := &r.dialects[i]
		if d.Body == nil {
			continue
		}
		if len(b.text()) == 0 {
			return
		}
		said, ok := d.Body(b.of, b.text())
		if (ok || s.Refused && said.headers != nil) && r.take(&said, b.clock, s) {
			return
		}
	}
}

// take adds what a body says, and reports whether that has a wait. It is more precise than a header's whole seconds; if
// they differ by more, the header counts.
func (r *Reader) take(said *Refusal, clock clock, s *Reply) (waits bool) {
	s.Refused = true
	s.Final, s.NotRate, s.Whole = s.Final || said.Final, s.NotRate || said.NotRate, s.Whole || said.Whole
	var in Reply
	if readRetryAfter(said.headers, clock, &in); said.RetryAfter > 0 {
		in.After = said.RetryAfter
	}
	near := !s.Told || math.Abs(float64(s.After-in.After)) <= float64(time.Second)
	if in.After > 0 && in.After <= Longest && near {
		s.After, s.Told, s.Undated = in.After, true, in.Undated
	}
	if !s.Told && len(s.Limits) == 0 {
		r.limits(said.headers, clock, s)
	}
	return in.After > 0
}
