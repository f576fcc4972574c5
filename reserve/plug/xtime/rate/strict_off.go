//go:build !xtimestrict

package rate

// Strict is true in a program that is built with -tags xtimestrict. Its limiters keep the times of
// golang.org/x/time/rate v0.16 to the letter, instead of pace's, and have no Pace. It is for tests that compare the
// two.
const Strict = false

// Allow reports whether an event may happen now, and takes its token.
//
//go:fix inline
func (lim *Limiter) Allow() bool { return lim.Pace().Allow() }

// Tokens returns the number of tokens that are there now. It is negative while events wait.
//
//go:fix inline
func (lim *Limiter) Tokens() float64 { return lim.Pace().Snapshot().Level }
