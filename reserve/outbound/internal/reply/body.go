package reply

import (
	"math"
	"net/http"
	"strings"
	"time"
)

type body struct {
	of    *http.Response
	begin string
	ready bool
}

func (b *body) text() string {
	if !b.ready && b.of.Body != nil {
		b.begin = string(peek(b.of))
	}
	b.ready = true
	return b.begin
}

// sign returns the first sign that is there. Without a status it is in a refusal, or a 403.
func (b *body) sign(dialects []Dialect, refused bool) *Sign {
	for i := range dialects {
		for j := range dialects[i].Signs {
			sign := &dialects[i].Signs[j]
			if (sign.Status != 0 || sign.Body == "" || refused) && sign.on(b) {
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
	if s.Path != "" && (b.of.Request == nil || !strings.HasSuffix(b.of.Request.URL.Path, s.Path)) {
		return false
	}
	if s.Header != "" {
		if v := b.of.Header[s.Header]; len(v) == 0 || !strings.Contains(v[0], s.Value) {
			return false
		}
	}
	if s.Body != "" {
		return strings.Contains(b.text(), s.Body)
	}
	return s.Header != "" || s.Status != 0
}

func (b *body) read(dialects []Dialect, s *Reply) {
	for i := range dialects {
		d := &dialects[i]
		if d.Body == nil {
			continue
		}
		if b.text() == "" {
			return
		}
		said, ok := d.Body(b.of, []byte(b.text()))
		if !ok {
			continue
		}
		s.Refused = true
		s.Final = s.Final || said.Final
		s.Whole = s.Whole || said.Whole
		// A body is more precise than a header's whole seconds; if they differ by more, the header counts.
		wait := said.RetryAfter
		if wait > 0 && wait <= Longest && (!s.Told || math.Abs(float64(s.After-wait)) <= float64(time.Second)) {
			s.After, s.Told = wait, true
		}
		return
	}
}
