//go:build xtimestrict

package rate

import "time"

// Strict is true: the program is built with -tags xtimestrict. Its limiters keep the times of golang.org/x/time/rate
// v0.16 to the letter, instead of pace's, and have no Pace.
const Strict = true

// Allow reports whether an event may happen now, and takes its token.
func (lim *Limiter) Allow() bool { return lim.AllowN(time.Now(), 1) }

// Tokens returns the number of tokens that are there now. It is negative while events wait.
func (lim *Limiter) Tokens() float64 { return lim.TokensAt(time.Now()) }
