package reserve

import "fmt"

// A SizeError says that a request asks for more permits than the limiter can ever
// grant to one. Nothing was taken, and no wait would help: ask for Max at most, more often.
//
// With window.New(10, time.Second), Acquire(ctx, 11) returns a SizeError with
// Permits 11 and Max 10. Bursty and warming-up limiters never return one.
type SizeError struct {
	Permits int // that were asked for
	Max     int // that one request may ask for
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("reserve: %d permits were asked for at once; this limiter never grants more than %d", e.Permits, e.Max)
}

// bounded is a ledger that grants no request more than Max permits, which never
// changes. Reserve and Take refuse what is larger.
type bounded interface{ Max() int }

// tooLarge returns a *SizeError if the size of a request is why the ledger refused it.
// It is asked only after a refusal, so that what is granted does not pay for it.
func (l *Limiter) tooLarge(permits int) error {
	if b, ok := l.ledger.(bounded); ok && permits > b.Max() {
		return &SizeError{Permits: permits, Max: b.Max()}
	}
	return nil
}
