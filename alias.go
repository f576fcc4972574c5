package pace

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
)

// The names that most programs need: this package alone is enough. Package reserve defines and documents them.
type (
	// A Limiter hands out permits at a rate. Its methods are at [reserve.Limiter]:
	//
	//	Acquire, TryAcquire, TakeUpTo, Wait, Allow                take permits
	//	Reserve, ReserveWithin                                    promise them
	//	SetRate, Retime, SetPolicy, PauseUntil, Resume            change the limiter
	//	Rate, Stored, NextFree, Peek, Forecast, Snapshot          look, and take nothing
	//	AppendBinary                                              saves it
	Limiter = reserve.Limiter
	// A Reservation is a promise of permits at a known time: see [reserve.Reservation].
	Reservation = reserve.Reservation
	// A Policy makes limiters: see [reserve.Policy].
	Policy = reserve.Policy
	// An Option changes what a constructor makes: see [reserve.Option].
	Option = reserve.Option
	// A Reserver can promise permits, as every limiter can: see [reserve.Reserver].
	Reserver = reserve.Reserver

	// A WaitError reports that a request was refused because it would wait too long: see [reserve.WaitError].
	WaitError = reserve.WaitError
	// A SizeError reports a request that is larger than its limiter ever grants: see [reserve.SizeError].
	SizeError = reserve.SizeError
)

// Forever is a wait without limit.
const Forever = reserve.Forever

// ErrCancelled is Wait's error for a cancelled reservation: see [reserve.ErrCancelled].
var ErrCancelled = reserve.ErrCancelled

// Must returns v, or panics if err is not nil: for constants, as in pace.Must(pace.NewBursty(50)).
func Must[T any](v T, err error) T { return reserve.Must(v, err) }

// Per returns a rate in permits per second: Per(5000, time.Hour) is 1.39. See [reserve.Per].
func Per(permits float64, d time.Duration) float64 { return reserve.Per(permits, d) }

// Acquire waits for n permits of any Reserver: see [reserve.Acquire].
func Acquire(ctx context.Context, r Reserver, n int) (waited time.Duration, err error) {
	return reserve.Acquire(ctx, r, n)
}

// All returns a Reserver that reserves from all of rs or from none: see [reserve.All].
func All(rs ...Reserver) Reserver { return reserve.All(rs...) }

// WithMaxWait sets the longest wait that any caller is promised: see [reserve.WithMaxWait].
func WithMaxWait(d time.Duration) Option { return reserve.WithMaxWait(d) }

// WithClock makes a limiter use another clock, for tests: see [reserve.WithClock].
func WithClock(c clockwork.Clock) Option { return reserve.WithClock(c) }

// WithStored sets how many permits are stored at the start: see [reserve.WithStored].
func WithStored(permits float64) Option { return reserve.WithStored(permits) }

// PayUpfront makes each request wait for its own permits, as in a classic token bucket: see [reserve.PayUpfront].
func PayUpfront() Option { return reserve.PayUpfront() }
