package reply

import (
	"bytes"
	"math"
	"net/http"
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

// sign returns the first sign that is there. Without a status it is in a refusal, or a 403.
func (b *body) sign(dialects []Dialect, refused bool) *Sign {
	for i := range dialects {
		for j := range dialects[i].Signs {
			sign := &dialects[i].Signs[j]
			if (sign.Status != 0 || sign.Body == "" || refused) && sign.on(b) && dialects[i].agrees(sign, b) {
				return sign
			}
		}
	}
	return nil
}

func (d *Dialect) agrees(sign *Sign, b *body) bool {
	if !sign.asks {
		return true
	}
	_, ok := d.Body(b.of, b.text())
	return ok
}

func (s *Sign) on(b *body) bool {
	if s.Status != b.of.StatusCode && s.Status != 0 || s.Host != "" && !isAt(b.of, s.Host) {
		return false
	}
	if s.Path != "" && (b.of.Request == nil || !strings.HasSuffix(b.of.Request.URL.Path, s.Path)) {
		return false
	}
	if s.Header != "" {
		if v := b.of.Header[s.Header]; len(v) == 0 || !strings.Contains(v[0], s.Value) {
			return false
		}
	}
	if s.Body != "" {
		return bytes.Contains(b.text(), []byte(s.Body))
	}
	return s.Header != "" || s.Status != 0
}

// isAt reports whether a response is that of a host, or of one below it.
func isAt(r *http.Response, host string) bool {
	if r.Request == nil {
		return false
	}
	of := r.Request.URL.Hostname()
	return of == host || strings.HasSuffix(of, "."+host)
}

func (b *body) read(dialects []Dialect, s *Reply) {
	for i := range dialects {
		d := &dialects[i]
		if d.Body == nil {
			continue
		}
		if len(b.text()) == 0 {
			return
		}
		said, ok := d.Body(b.of, b.text())
		if !ok {
			continue
		}
		s.Refused = true
		s.Final, s.NotRate, s.Whole = s.Final || said.Final, s.NotRate || said.NotRate, s.Whole || said.Whole
		if !s.Told && len(s.Limits) == 0 {
			readRetryAfter(said.headers, b.clock, s)
			readLimits(said.headers, b.clock, dialects, s)
		}
		// A body is more precise than a header's whole seconds; if they differ by more, the header counts.
		wait := said.RetryAfter
		if wait > 0 && wait <= Longest && (!s.Told || math.Abs(float64(s.After-wait)) <= float64(time.Second)) {
			s.After, s.Told = wait, true
		}
		if wait > 0 {
			return
		}
	}
}
