package reserve

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/isnil"
)

// All returns a Reserver for a request that is limited several times: per second and per hour, or per key and overall.
// The permits may be used at the latest of the times. Cancel, Settle and Wait apply to all. Without limiters, it grants
// everything at once. It panics if a Reserver is nil.
//
// If a limiter refuses, the request returns its error, and the limiters before it get their permits back. A
// *[WaitError] has the limiter's name ([WithName]) in Limit, or "2 of 3".
//
// Each limiter counts its permits at its own time, so the faster of two does not space calls that wait for the slower:
// with 10/s and 1000 an hour, of 2,000 callers at once 1,000 go in 100 s, and the others together an hour later. In
// package fair and in outbound.WithLimit, all limits are charged when a call goes.
func All(rs ...Reserver) Reserver {
	for _, r := range rs {
		if isnil.Value(r) {
			panic(valueError("a limiter of All", nil, "a limiter"))
		}
	}
	return all(slices.Clone(rs))
}

type all []Reserver

func (a all) Parts() allornothing.Parts[Reserver] {
	return append(allornothing.Parts[Reserver]{}, a...)
}

// Rate returns the lowest rate, or 0 if a reserver has none.
func (a all) Rate() float64 {
	lowest := math.Inf(1)
	for _, r := range a {
		one, ok := r.(interface{ Rate() float64 })
		if !ok {
			return 0
		}
		lowest = min(lowest, one.Rate())
	}
	return lowest
}

func (a all) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (Reservation, error) {
	if err := checkPermits(n); err != nil {
		return Reservation{}, err
	}
	if err := done.Cause(ctx); err != nil {
		return Reservation{}, err
	}
	b := &bundle{permits: n, parts: make([]Reservation, len(a))}
	refused, err := allornothing.Reserve(len(a), func(i int) (err error) {
		b.parts[i], err = a[i].ReserveWithin(ctx, n, maxWait)
		return
	}, b.cancel)
	if err != nil {
		return Reservation{}, b.named(refused, err)
	}
	return NewReservation(b), nil
}

// A bundle is a promise of one reservation from each of several reservers.
type bundle struct {
	permits int
	parts   []Reservation
}

func (b *bundle) Permits() int { return b.permits }

func (b *bundle) At() (latest time.Time) {
	for i := range b.parts {
		if at := b.parts[i].At(); at.After(latest) {
			latest = at
		}
	}
	return latest
}

func (b *bundle) Delay() time.Duration {
	_, longest := allornothing.Last(len(b.parts), b.delay)
	return longest
}

func (b *bundle) Wait(ctx context.Context) error {
	last, longest := allornothing.Last(len(b.parts), b.delay)
	wait := func(i int) error { return b.parts[i].Wait(ctx) }
	if longest > 0 && len(b.parts) > 1 {
		b.Count(1)
		defer b.Count(-1)
		wait = func(i int) error { // where the limiter counts it itself
			b.parts[i].engine().Count(-1)
			defer b.parts[i].engine().Count(1)
			return b.parts[i].Wait(ctx)
		}
	}
	failed, err := allornothing.Wait(len(b.parts), last, func(i int) error {
		if i != last && b.delay(i) == 0 && (b.parts[i].engine().Limiter() != nil || done.Cause(ctx) != nil) {
			return nil // it is due, too, although the context may have ended
		}
		return wait(i)
	}, b.cancel)
	return b.named(failed, err)
}

// named names the limiter at i in a WaitError that names none yet.
func (b *bundle) named(i int, err error) error {
	refusal, ok := err.(*WaitError)
	if !ok || refusal.Limit != "" || len(b.parts) < 2 {
		return err
	}
	named := *refusal
	named.Limit = allornothing.Number(i, len(b.parts))
	return &named
}

func (b *bundle) Cancel() { b.Settle(0) }

func (b *bundle) Settle(actual int) {
	allornothing.Cancel(len(b.parts), func(i int) { b.parts[i].Settle(actual) })
}

func (b *bundle) Begin() {
	for i := range b.parts {
		b.parts[i].engine().Begin()
	}
}

func (b *bundle) End() {
	for i := range b.parts {
		b.parts[i].engine().End()
	}
}

// Count counts a caller that waits for all as waiting at each part.
func (b *bundle) Count(by int) {
	for i := range b.parts {
		b.parts[i].engine().Count(by)
	}
}

func (b *bundle) cancel(i int)              { b.parts[i].Cancel() }
func (b *bundle) delay(i int) time.Duration { return b.parts[i].Delay() }
