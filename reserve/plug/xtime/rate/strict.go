package rate

import (
	"math"
	"time"
)

// A strict limiter is the arithmetic of golang.org/x/time/rate v0.16: a number of tokens as of a time. See there for
// why.

func (lim *Limiter) advance(t time.Time) float64 {
	passed := max(0, t.Sub(lim.last)) // a time before the last brings nothing
	return min(float64(lim.burst), lim.tokens+lim.limit.tokensFromDuration(passed))
}

// settleAt brings the tokens up to a time, before limit or burst change.
func (lim *Limiter) settleAt(t time.Time) { lim.tokens, lim.last = lim.advance(t), t }

func (lim *Limiter) strictly(t time.Time, n int, most time.Duration, r *Reservation) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	if lim.limit == Inf {
		r.ok, r.settled = true, &settled{timeToAct: t}
		return
	}
	left := lim.advance(t) - float64(n)
	wait := time.Duration(0)
	if left < 0 {
		wait = lim.limit.durationFromTokens(-left)
	}
	if n > lim.burst || wait > most {
		return
	}
	r.ok, r.settled = true, &settled{t.Add(wait), lim, n, lim.limit}
	lim.tokens, lim.last, lim.lastEvent = left, t, r.timeToAct
}

// cancelStrictly gives back the tokens, less the tokens that were reserved behind them, until their time has come.
func (r *Reservation) cancelStrictly(t time.Time) {
	lim := r.strict
	lim.mu.Lock()
	defer lim.mu.Unlock()
	if lim.limit == Inf || r.tokens == 0 || r.timeToAct.Before(t) {
		return
	}
	back := float64(r.tokens) - r.limit.tokensFromDuration(lim.lastEvent.Sub(r.timeToAct))
	if back <= 0 {
		return
	}
	lim.tokens, lim.last = min(float64(lim.burst), lim.advance(t)+back), t
	if r.timeToAct.Equal(lim.lastEvent) { // it was the newest
		if before := r.timeToAct.Add(r.limit.durationFromTokens(-float64(r.tokens))); !before.Before(t) {
			lim.lastEvent = before
		}
	}
}

// durationFromTokens returns how long so many tokens take to come in.
func (limit Limit) durationFromTokens(tokens float64) time.Duration {
	if limit <= 0 {
		return InfDuration
	}
	d := tokens / float64(limit) * float64(time.Second)
	if d > math.MaxInt64 {
		return InfDuration
	}
	return time.Duration(d)
}

func (limit Limit) tokensFromDuration(d time.Duration) float64 {
	if limit <= 0 {
		return 0
	}
	return d.Seconds() * float64(limit)
}
