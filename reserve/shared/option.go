package shared

import (
	"fmt"
	"strings"
	"time"

	"github.com/nextfree/pace/internal/invalid"
)

// An Option changes one setting of a shared limiter.
type Option func(*settings) error

type settings struct {
	prefix  string
	timeout time.Duration
	mode    mode
	maxKeys int
	share   float64 // of the rate, where the mode is local
	ahead   int     // requests bought with a call at most
	script  *Script // the tests' has a clock of its own
	begin   time.Time
	now     func() int64 // nanoseconds since begin
	clock   func() int64 // what time that script is told, in microseconds
}

type mode int

const (
	closed mode = iota
	open
	local
)

func newSettings(opts []Option) (settings, error) {
	begin := time.Now()
	s := settings{
		prefix:  "pace",
		timeout: 500 * time.Millisecond,
		script:  script,
		begin:   begin,
		now:     func() int64 { return int64(time.Since(begin)) },
	}
	err := invalid.Apply(valueError, &s, opts)
	return s, err
}

// WithPrefix sets what keys begin with: with "billing" the key of "api" is "billing:{api}", for an ACL of ~billing:*.
// Default: "pace".
func WithPrefix(prefix string) Option {
	return func(s *settings) error {
		if strings.ContainsAny(prefix, "{}") {
			return valueError("WithPrefix", prefix, "no braces, which choose the node of a cluster")
		}
		s.prefix = prefix
		return nil
	}
}

// WithTimeout sets how long the store may take to answer, at least 1 ms. With another caller's call or probe before its
// own, a request waits for at most twice that. It should be longer than a round trip and any pause of the server or of
// this machine: with 50 ms, 29 % of the calls failed on a busy laptop. Default: 500 ms.
func WithTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d < time.Millisecond { // as of WithTimeout(5), which means 5 ns
			return valueError("WithTimeout", d, "at least a millisecond, as in 500*time.Millisecond")
		}
		s.timeout = d
		return nil
	}
}

// WithMaxKeys sets how many keys a process of [NewKeyed] remembers; a new key beyond that is refused with
// [keyed.ErrTooManyKeys]. A key takes about 600 bytes, and 1,200 with a fallback. Default: 1<<20.
func WithMaxKeys(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return valueError("WithMaxKeys", n, "at least 1")
		}
		s.maxKeys = n
		return nil
	}
}

// WithAhead lets a call buy up to n more requests (at most 256), which later callers take without a call: for a store
// that is far away, or a hot key. It buys what callers got in the time of eight calls, as far as the limit has room
// within two. With 100 ms to the store, one caller in each of four processes gets 960 of 1,000/s, and 39/s without.
// Default: 0.
//
// Such permits may be used two calls' time after their time; also after another process's PauseUntil, SetRate or Reset.
// Snapshot, Stored and Decide count them as taken. What nobody has wanted goes back within six calls' time; it is lost
// if that fails. A request that finds permits here may go before an earlier one that needs more. At a window or a
// calendar a stretch may have the permits of two calls' time too many.
func WithAhead(n int) Option {
	return func(s *settings) error {
		if n < 0 || n > maxList {
			return valueError("WithAhead", n, fmt.Sprint("0 to ", maxList))
		}
		s.ahead = n
		return nil
	}
}

// FailClosed refuses every request with an *[UnavailableError] while the store fails. It is the default.
func FailClosed() Option { return failing(closed) }

func failing(as mode) Option {
	return func(s *settings) error {
		s.mode = as
		return nil
	}
}

// FailOpen grants every request at once while the circuit is open, or if this process knows no answer: for limits that
// matter less than the calls. If single calls fail or take longer, requests are granted as the last answer allows.
//
// The permits are charged when the store is back, up to a capacity, less what calls without an answer may have charged.
// The store gets at most three quarters of a caller's time until its deadline.
func FailOpen() Option { return failing(open) }

// Local limits each process alone while the store fails, at a share of the rate in (0, 1]. It begins with nothing
// stored, when the debt that the store's last answer showed is paid. With 4 processes at 100/s, Local(0.25) allows 25/s
// in each. A capacity that follows the rate (pace.WithBurst, warm-up) shrinks by the same share. Charges and deadlines
// are [FailOpen]'s.
func Local(share float64) Option {
	return func(s *settings) error {
		if !(share > 0 && share <= 1) {
			return valueError("Local", share, "a share of the rate, more than 0 and at most 1")
		}
		s.mode, s.share = local, share
		return nil
	}
}
