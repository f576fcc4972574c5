package inbound

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A Refusal is the reason why a request was refused, and the answer to its client.
type Refusal struct {
	// Status is 429; 503 if a tier failed or is Overload; 413 if a tier never grants that many permits at once; 401
	// after an UnauthorizedError.
	Status int
	// Tiers are the tiers that refuse, in their order: none if a tier failed, or with 401.
	Tiers []string
	// Wait is the longest of their waits: 0 if a tier failed, and reserve.Forever with 413.
	Wait       time.Duration
	RetryAfter int        // seconds: the wait, spread, rounded up; 1 to a year; 0 with 401 and 413, which no wait mends
	Err        *TierError // of the tier that decided

	body   []byte    // room for it; nil: a caller's own Refusal
	values [4]string // of header fields: under a flood most requests are refused
	used   int
}

func (f *Refusal) set(h http.Header, field, value string) {
	v := f.values[f.used : f.used+1 : f.used+1]
	v[0], h[field] = value, v
	f.used = (f.used + 1) % len(f.values)
}

// ServeHTTP writes a problem (RFC 9457), or a line of text if the client asks for text and not for JSON.
func (f *Refusal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	title := http.StatusText(f.Status)
	h, body := w.Header(), f.body[:0]
	if wantsText(r) {
		f.set(h, "Content-Type", "text/plain; charset=utf-8")
		f.set(h, "X-Content-Type-Options", "nosniff")
		body = append(body, title...)
		if len(f.Tiers) > 0 {
			body = append(f.appendTiers(append(body, " ("...)), ')')
		}
		body = append(body, '.')
		if f.RetryAfter > 0 {
			body = f.appendDetail(append(body, ' '))
		}
		body = append(body, '\n')
	} else {
		// Nothing here needs escaping: see wellNamed.
		f.set(h, "Content-Type", "application/problem+json")
		body = append(append(body, `{"type":"`...), f.kind()...)
		body = append(append(append(body, `","title":"`...), title...), `","status":`...)
		body = strconv.AppendInt(body, int64(f.Status), 10)
		if f.RetryAfter > 0 {
			body = append(f.appendDetail(append(body, `,"detail":"`...)), '"')
		}
		if len(f.Tiers) > 0 {
			body = append(f.appendTiers(append(body, `,"violated-policies":[`...)), ']')
		}
		body = append(body, "}\n"...)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}

func (f *Refusal) kind() string {
	switch f.Status {
	case http.StatusTooManyRequests:
		return "https://iana.org/assignments/http-problem-types#quota-exceeded"
	case http.StatusServiceUnavailable:
		return "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	}
	return "about:blank" // the status says it all (RFC 9457, section 4.2.1)
}

func (f *Refusal) appendDetail(b []byte) []byte {
	return append(strconv.AppendInt(append(b, "Try again in "...), int64(f.RetryAfter), 10), " s."...)
}

func (f *Refusal) appendTiers(b []byte) []byte {
	for i, name := range f.Tiers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"')
	}
	return b
}

func isRefusal(err error) bool { _, ok := waitOf(err); return ok }

// waitOf returns the wait that caused a refusal: forever, where no wait helps.
func waitOf(err error) (time.Duration, bool) {
	if refused, ok := err.(*reserve.WaitError); ok { // the usual one, without the cost of errors.As
		return refused.Wait, true
	}
	var refused *reserve.WaitError
	if errors.As(err, &refused) {
		return refused.Wait, true
	}
	var full *queueFull
	if errors.As(err, &full) {
		return full.wait, true
	}
	var tooLarge *reserve.SizeError
	return reserve.Forever, errors.As(err, &tooLarge)
}

func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, claims []claim, tier int, err error) {
	room := &struct { // in one piece
		Refusal
		err   TierError
		names [4]string
		body  [256]byte
	}{err: TierError{Tier: m.tiers[tier].name, Err: err}}
	f := &room.Refusal
	f.Err, f.body = &room.err, room.body[:0]
	longest, h, interval := tier, w.Header(), time.Duration(0)
	wait, refused := waitOf(err)
	if refused {
		f.Wait, f.Tiers = wait, append(room.names[:0], m.tiers[tier].name)
		longest = m.violated(r, claims, tier, f)
		interval = m.tiers[longest].interval(claims[longest].cost)
	} else if challenge, ok := unauthorized(err); ok {
		f.Status = http.StatusUnauthorized
		h.Set("WWW-Authenticate", challenge)
	} else {
		f.Status = http.StatusServiceUnavailable
	}
	wait = max(0, f.Wait-m.delay(r.Context()))
	f.set(h, "Cache-Control", "no-store")
	if f.Status != http.StatusUnauthorized && f.Status != http.StatusRequestEntityTooLarge {
		f.RetryAfter = int(ceilSeconds(m.comebacks[longest].next(wait, interval, m.jitter)))
		f.set(h, "Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if refused {
		m.refusedFields(h, claims, longest, f.RetryAfter)
	} else {
		m.setPolicies(h, m.policyField(nil)) // a limiter that has just failed is not asked
	}
	if m.answer != nil {
		m.answer(w, r, f)
		return
	}
	f.ServeHTTP(w, r)
}

// violated returns the tier with the longest wait. It does not ask limiters elsewhere: a flood of refusals must not
// reach them.
func (m *Middleware) violated(r *http.Request, claims []claim, first int, f *Refusal) (longest int) {
	longest, f.Status = first, http.StatusTooManyRequests
	overload := m.tiers[first].overload
	for i := first + 1; i < len(m.tiers); i++ {
		t := &m.tiers[i]
		c := &claims[i]
		if t.dryRun || c.cost < 1 {
			continue
		}
		var err error
		if c.which, err = t.find(r); err != nil {
			continue
		}
		wait, ok := t.peek(c.which, c.cost)
		if !ok || wait <= m.queueWait {
			continue
		}
		f.Tiers = append(f.Tiers, t.name)
		overload = overload && t.overload
		if wait > f.Wait {
			longest, f.Wait = i, wait
		}
	}
	switch {
	case f.Wait == reserve.Forever:
		f.Status = http.StatusRequestEntityTooLarge
	case overload:
		f.Status = http.StatusServiceUnavailable
	}
	return longest
}

func wantsText(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header["Accept"], ","))
	return strings.Contains(accept, "text/") && !strings.Contains(accept, "json")
}

func (m *Middleware) delay(ctx context.Context) time.Duration {
	defer m.delayed.Add(-1)
	if m.delayed.Add(1) > m.tarpitMost {
		return 0
	}
	m.everDelayed.Add(1)
	begin := time.Now()
	timer := time.NewTimer(m.tarpitDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		m.gone.Add(1)
	}
	return time.Since(begin)
}
