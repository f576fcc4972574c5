package leases

import (
	"context"

	"github.com/nextfree/pace/smooth"
)

// A Seller is the shared limiter that permits are bought of. Times are nanoseconds on its clock.
type Seller interface {
	Now() int64

	// Terms returns the limiter's curve, and whether its requests pay upfront.
	Terms() (curve *smooth.Curve, upfront bool)

	// Buy asks the store for permits, and puts the answer into p, even if the store's client panics.
	Buy(ctx context.Context, p *Purchase)

	// Refund gives permits of a lot back to the store.
	Refund(ctx context.Context, r Refund) error

	// Charge charges permits that callers have used beyond their reservations.
	Charge(permits int)
}

// A Purchase is a request for permits, and the store's answer.
type Purchase struct {
	Permits  int     // at least 1
	MaxWait  int64   // from when the store decides
	Deadline int64   // ready by then; or saturate.Never
	By       int64   // the answer is wanted by then; 0: by the deadline
	Back     *Refund // goes to the store in the same call; nil: none

	Err     error // there was no answer
	Common  bool  // other callers would have got the same error
	Charged bool  // the store may have charged the permits although there was no answer
	Granted bool
	Wait    int64 // if it was refused: how long it would have waited
	Soonest int64 // and how long a request for one permit would have
	Lot     Lot   // if it was granted
}

// A Lot is what one purchase bought. AtOnce of its permits are ready at Begin, and the others one after another until
// End.
type Lot struct {
	Permits    int
	AtOnce     float64
	Begin, End int64
	Ahead      float64 // how far ahead the store was sold before this purchase, in nanoseconds
	Interval   float64 // nanoseconds from one fresh permit to the next
	Sale       any     // the seller's own record of it
}

// A Refund gives back the last permits of what is left of a lot.
type Refund struct {
	Lot           Lot
	Left, Permits int // Left: before this refund
}
