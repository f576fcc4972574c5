package reply

import (
	"math"
	"net/http"
	"strings"
	"time"
)

type body struct {
	of    *http.Response
	begin []byte
	ready bool
}

func (b *body) bytes() []byte {
	if !b.ready && b.of.Body != nil {
		b.begin = peek(b.of)
	}
	b.ready = true
	return b.begin
}

func (b *body) sign(dialects []Dialect) *Sign {
	for i := range dialects {
		for j := range dialects[i].Signs {
			if sign := &dialects[i].Signs[j]; sign.on(b) {
				return sign
			}
		}
	}
	return nil
}

func (s *Sign) on(b *body) bool {
	if s.Status != b.of.StatusCode && s.Status != 0 {
		return false
	}
	if s.Header != "" {
		if v := b.of.Header[s.Header]; len(v) == 0 || !strings.Contains(v[0], s.Value) {
			return false
		}
	}
	if s.Body != "" {
		return strings.Contains(string(b.bytes()), s.Body)
	}
	return s.Header != "" || s.Status != 0
}

// throttles reports whether a dialect wants the body though the status is no refusal.
func (b *body) throttles(dialects []Dialect) bool {
	for i := range dialects {
		if d := &dialects[i]; d.Body != nil && d.Throttles != nil && d.Throttles(b.of) {
			return true
		}
	}
	return false
}

func (b *body) read(dialects []Dialect, s *Reply) {
	for i := range dialects {
		d := &dialects[i]
		if d.Body == nil {
			continue
		}
		if len(b.bytes()) == 0 {
			return
		}
		said, ok := d.Body(b.of, b.bytes())
		if !ok {
			continue
		}
		s.Refused = true
		s.Final = s.Final || said.Final
		s.Whole = s.Whole || said.Whole
		// A body is more precise than a header's whole seconds; if they differ by more, the header counts.
		if wait := said.RetryAfter; wait > 0 && wait <= Longest && (!s.Told || math.Abs(float64(s.After-wait)) <= float64(time.Second)) {
			s.After, s.Told = wait, true
		}
		return
	}
}
