package reserve

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/done"
)

// All returns a Reserver that reserves from each of the given ones, or from none:
// for a request that is limited per second and per hour, or per key and overall.
// The permits may be used at the latest of the times. If one refuses, those before it
// get theirs back, and are as if they had never been asked, and so are those that asked them in
// between: they move up, unless they were refused meanwhile or it is a limiter shared between
// machines. Cancel, Settle and Wait apply to all of them. All of no limiters grants everything at once.
//
// Each limiter sells at its own time, which may be long before the latest: where calls wait
// for the slower of two, the faster one does not space them again when they go.
//
// With limiters at 10/s and at 1000/h, both after a long idle time, a caller that
// makes one call at a time is limited by the first, and after 1000 calls by the second.
func All(rs ...Reserver) Reserver { return all(slices.Clone(rs)) }

type all []Reserver

// Rate returns the lowest of the rates, 0 if one of them can't tell.
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
	for i, r := range a {
		var err error
		if r == nil {
			err = &ValueError{Package: "reserve", Name: "All", Value: r, Want: "reservers that are not nil"}
		} else {
			b.parts[i], err = r.ReserveWithin(ctx, n, maxWait)
		}
		if err != nil {
			b.parts = b.parts[:i]
			b.Cancel()
			return Reservation{}, err
		}
	}
	return NewReservation(b), nil
}

// A bundle is the promise that consists of one by each of several reservers.
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

func (b *bundle) Delay() (longest time.Duration) {
	for i := range b.parts {
		longest = max(longest, b.parts[i].Delay())
	}
	return longest
}

// Wait waits for the last one first: if that can't be reached, nobody need wait for
// the others.
func (b *bundle) Wait(ctx context.Context) error {
	last := 0
	for i := range b.parts {
		if b.parts[i].Delay() > b.parts[last].Delay() {
			last = i
		}
	}
	for i := range b.parts {
		if err := b.parts[(last+i)%len(b.parts)].Wait(ctx); err != nil {
			b.Cancel()
			return err
		}
	}
	return nil
}

// Cancel begins with the last one, so that each can be as if it had never been.
func (b *bundle) Cancel() { b.Settle(0) }

func (b *bundle) Settle(actual int) {
	for i := range b.parts {
		b.parts[len(b.parts)-1-i].Settle(actual)
	}
}
