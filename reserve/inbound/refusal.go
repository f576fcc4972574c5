package inbound

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A Refusal is the reason why a request was refused, and the answer to its client.
type Refusal struct {
	Status int // 429, or 503 if a tier failed or is Overload
	// Tiers are those that refuse it, in their order; none if a tier failed. The first one decided;
	// of those after it, limiters elsewhere are not asked.
	Tiers      []string
	Wait       time.Duration // the longest of their waits; 0 if a tier failed
	RetryAfter int           // seconds: the wait, spread, rounded up; at least 1, at most a year
	Err        *TierError    // of the tier that decided
}

// ServeHTTP answers the request as package inbound does by default: with a problem
// (RFC 9457), or a line of text if the client asks for text and not for JSON.
func (f *Refusal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	title, kind := http.StatusText(f.Status), "quota-exceeded"
	if f.Status == http.StatusServiceUnavailable {
		kind = "temporary-reduced-capacity"
	}
	body := make([]byte, 0, 256)
	if wantsText(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		body = append(body, title...)
		if len(f.Tiers) > 0 {
			body = append(f.appendTiers(append(body, " ("...)), ')')
		}
		body = append(body, ". Try again in "...)
		body = append(strconv.AppendInt(body, int64(f.RetryAfter), 10), " s.\n"...)
	} else {
		// Nothing here needs escaping: see wellNamed.
		w.Header().Set("Content-Type", "application/problem+json")
		body = append(append(body, `{"type":"https://iana.org/assignments/http-problem-types#`...), kind...)
		body = append(append(append(body, `","title":"`...), title...), `","status":`...)
		body = append(strconv.AppendInt(body, int64(f.Status), 10), `,"detail":"Try again in `...)
		body = append(strconv.AppendInt(body, int64(f.RetryAfter), 10), ` s."`...)
		if len(f.Tiers) > 0 {
			body = append(f.appendTiers(append(body, `,"violated-policies":[`...)), ']')
		}
		body = append(body, "}\n"...)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}

// appendTiers appends "user","global".
func (f *Refusal) appendTiers(b []byte) []byte {
	for i, name := range f.Tiers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"')
	}
	return b
}

// isRefusal reports whether a limiter has said no, rather than failed.
func isRefusal(err error) bool { _, ok := waitOf(err); return ok }

// waitOf returns the wait that was the reason for a refusal: forever, where no wait helps.
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

// queueFull is ErrQueueFull, with the wait that would have been.
type queueFull struct{ wait time.Duration }

func (e *queueFull) Error() string        { return ErrQueueFull.Error() }
func (e *queueFull) Is(target error) bool { return target == ErrQueueFull }

// refuse answers a request that ended at a tier.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, cost, tier int, err error) {
	room := &struct { // in one piece: under a flood most requests are refused
		Refusal
		err   TierError
		names [4]string
	}{err: TierError{Tier: m.tiers[tier].name, Err: err}}
	f := &room.Refusal
	f.Err = &room.err
	longest, refused := tier, false
	var interval time.Duration
	if f.Wait, refused = waitOf(err); refused {
		f.Tiers = append(room.names[:0], m.tiers[tier].name)
		longest = m.violated(r, cost, tier, f)
		interval = m.interval(longest, cost)
	} else {
		f.Status, f.Wait = http.StatusServiceUnavailable, 0
	}
	wait := f.Wait
	if m.tarpit > 0 {
		wait = max(0, wait-m.delay(r.Context()))
	}
	f.RetryAfter = int(ceilSeconds(m.lines[longest].turn(wait, interval, m.jitter)))
	h := w.Header()
	values := &[2]string{"no-store", strconv.Itoa(f.RetryAfter)} // one allocation for both
	h["Cache-Control"] = values[0:1:1]
	h["Retry-After"] = values[1:2:2]
	if refused {
		m.refusedHeaders(h, longest, f.RetryAfter)
	} else {
		m.setPolicies(h)
	}
	if m.answer != nil {
		m.answer(w, r, f)
		return
	}
	f.ServeHTTP(w, r)
}

// violated fills in which tiers refuse the request besides the first, and returns the one with the
// longest wait. Limiters elsewhere are not asked: a flood of refusals is not to reach them.
func (m *Middleware) violated(r *http.Request, cost, first int, f *Refusal) (longest int) {
	longest, f.Status = first, http.StatusTooManyRequests
	overload := m.tiers[first].overload
	for i := first + 1; i < len(m.tiers); i++ {
		t := &m.tiers[i]
		if t.dryRun || t.peek == nil {
			continue
		}
		wait, ok := t.wait(r, cost)
		if !ok || wait <= m.maxWait {
			continue
		}
		f.Tiers = append(f.Tiers, t.name)
		overload = overload && t.overload
		if wait > f.Wait {
			longest, f.Wait = i, wait
		}
	}
	if overload {
		f.Status = http.StatusServiceUnavailable
	}
	return longest
}

// wait returns how long a request would have to wait at the tier, which must have a peek.
func (t *Tier) wait(r *http.Request, cost int) (time.Duration, bool) {
	wait, err := t.peek(r, cost)
	if err != nil {
		return waitOf(err)
	}
	return wait, true
}

// interval returns the time in which a tier that all clients share lets one such
// request pass; 0 if there is none.
func (m *Middleware) interval(i, cost int) time.Duration {
	t := &m.tiers[i]
	if t.rate == nil {
		return 0
	}
	return seconds(float64(cost) / t.rate())
}

// delay holds a refusal back if there is room for it, and returns for how long. A context that ends
// meanwhile ends the delay, and the refusal is still sent: a client that has closed its half of the
// connection may be reading the other one.
func (m *Middleware) delay(ctx context.Context) time.Duration {
	defer m.stuck.Add(-1)
	if m.stuck.Add(1) > m.maxTarpit {
		return 0
	}
	m.delayed.Add(1)
	begin := time.Now()
	timer := time.NewTimer(m.tarpit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		m.gone.Add(1)
	}
	return time.Since(begin)
}
