package llm

import (
	"math"
	"time"
)

// flight bounds a key's calls that are out: to one until its limits are known, and after refusals without a time, as
// [New] says.
type flight struct {
	gate

	most     int       // how many they grow to by acceptances
	doubted  time.Time // the first 429, where limits are known: see [outbound.New] for how many go at once
	event    time.Time // of the latest refusals that counted
	out      int       // then
	refused  int       // of these
	proven   int       // the most that were out when a call was sent, after the event, that was accepted
	row      int       // refusals without an acceptance between
	accepted int       // since most grew
	rest     time.Duration
}

const (
	firstRest = time.Second
	lastRest  = 8 * time.Second
	notChance = 3 // in a row
)

// refuse returns how long no call may go after a refusal without a time, a 429 if tooMany; 0: they may.
func (f *flight) refuse(c *call, now time.Time, tooMany bool) (rest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tooMany && f.doubted.IsZero() && c.account.isLimited() {
		f.doubted = now
	}
	if tooMany && !c.sent.After(f.doubted) {
		return 0
	}
	if (f.event.IsZero() || c.sent.After(f.event)) && !f.happens(c.level, now) {
		return 0
	}
	f.refused++
	n := max(1, f.out-f.refused)
	switch {
	case f.refused < f.out:
		f.most = n
	case f.refused == f.out:
		f.most = f.out
		f.rest = min(max(firstRest, 2*f.rest), lastRest)
		rest = f.rest
	}
	f.resize(n)
	return rest
}

// happens begins an event, unless the refusal counts as chance: see [New].
func (f *flight) happens(level int, now time.Time) bool {
	f.row++
	out := f.Out()
	if (out < 2 || level <= f.proven) && f.rest == 0 && f.row < notChance {
		return false
	}
	f.event, f.out, f.refused, f.proven, f.row, f.accepted = now, out, 0, 0, 0, 0
	return true
}

func (f *flight) accept(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.row = 0
	if f.event.IsZero() || !c.sent.After(f.event) {
		return
	}
	f.proven, f.rest = max(f.proven, c.level), 0
	each := 4
	if f.doubted.IsZero() {
		each *= f.most
	}
	if f.accepted++; f.accepted >= each {
		f.accepted, f.most = 0, f.most+1
	}
	if f.n < math.MaxInt {
		f.resize(min(f.n+1, f.most))
	}
}
