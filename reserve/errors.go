package reserve

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nextfree/pace/internal/engine"
)

// A WaitError reports a request that would have waited too long. Nothing was taken.
//
// At 1/s, after Acquire(8), ReserveWithin(ctx, 1, 2*time.Second) returns a WaitError with Wait 8 s and MaxWait 2 s. If
// the context's deadline was the reason, errors.Is(err, context.DeadlineExceeded) holds.
type WaitError struct {
	Wait    time.Duration // how long it would have waited
	MaxWait time.Duration // the longest wait that was allowed; negative if the deadline had passed
	Cause   error         // context.DeadlineExceeded where the deadline was the reason; otherwise nil
	// Limit is the name of the limit that refused ([WithName], a shared limiter's, a limit's of package outbound), or
	// "2 of 3" for the second of an [All]; empty without a name.
	Limit string
}

func (e *WaitError) Error() string {
	by := ""
	if e.Limit != "" {
		by = fmt.Sprintf(" for limit %q", e.Limit)
	}
	if e.Cause != nil {
		return fmt.Sprintf("pace: a wait of %v%s would pass the deadline, %v from now", e.Wait, by, e.MaxWait)
	}
	return fmt.Sprintf("pace: a wait of %v%s is longer than the longest allowed, %v", e.Wait, by, e.MaxWait)
}

func (e *WaitError) Unwrap() error { return e.Cause }

// Timeout reports whether a deadline was the reason, as for a net.Error.
func (e *WaitError) Timeout() bool { return e.Cause != nil }

// A ValueError reports an argument or an option that makes no sense. Nothing was changed.
type ValueError struct {
	Package string // the package that refused it: "pace", "window"
	Name    string // the argument or option: "permits", "WithBurst"
	Value   any
	Want    string // a right value: "at least 1"
}

func (e *ValueError) Error() string {
	value := fmt.Sprint(e.Value)
	if text, ok := e.Value.(string); ok {
		value = strconv.Quote(text)
	}
	return fmt.Sprintf("%s: %s is %s; want %s", e.Package, e.Name, value, e.Want)
}

// An OptionError reports an option that does not apply to a limiter.
type OptionError struct {
	Package string // the constructor's package: "warmup"
	Option  string // "WithBurst"
	Limiter string // "a warming-up limiter"
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: %s does not apply to %s", e.Package, e.Option, e.Limiter)
}

// ErrCancelled is the error of waiting for a cancelled [Reservation].
var ErrCancelled = engine.ErrCancelled

func valueError(name string, value any, want string) error {
	return &ValueError{Package: "pace", Name: name, Value: value, Want: want}
}

func checkPermits(n int) error {
	if n < 1 {
		return valueError("permits", n, "at least 1")
	}
	return nil
}

func checkRate(permitsPerSecond float64) error {
	if permitsPerSecond > 0 { // false for NaN
		return nil
	}
	return valueError("rate", permitsPerSecond, "a positive number of permits per second")
}

// A SizeError reports a request for more permits than the limiter ever grants to a request. Nothing was taken. Split it
// into requests for at most Max permits: 10 of window.New(10, time.Second). Bursty and warming-up limiters never return
// it.
type SizeError struct {
	Permits int // the number asked for
	Max     int // the largest number that one request may ask for
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("pace: %d permits were asked for at once; this limiter never grants more than %d",
		e.Permits, e.Max)
}
