package leases

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// lookAgain starts a timer that looks for permits that have expired, if nothing is bought before. The pool must be
// locked.
func (b *Buyer) lookAgain(after int64) {
	d := time.Duration(saturate.Add(after, b.horizon/4))
	if b.idle == nil {
		b.idle = time.AfterFunc(d, b.tidy)
		return
	}
	b.idle.Reset(d)
}

// tidy gives expired permits back to the store.
func (b *Buyer) tidy() {
	defer b.swallow() // as in prefetch
	b.with(func(now int64, p *pool) {
		p.advance(now)
		if len(p.leases) > 0 {
			b.lookAgain(p.leases[0].expires - now)
		}
	})
	_ = b.sendBack(context.Background())
}

// swallow ends and counts a panic.
func (b *Buyer) swallow() {
	if recover() != nil {
		b.panics.Add(1)
	}
}

// Emptied empties the pool, except for what callers were promised, and runs do while nothing is bought. A nil buyer
// just runs do.
func (b *Buyer) Emptied(ctx context.Context, do func() error) error {
	if b == nil {
		return do()
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-b.turn }()
	b.with(func(now int64, p *pool) { p.release(now) })
	if err := b.sendBack(ctx); err != nil {
		return err
	}
	return do()
}

// sendBack gives back to the store all that the pool has given back.
func (b *Buyer) sendBack(ctx context.Context) error {
	var back []Refund
	b.with(func(_ int64, p *pool) { back, p.back = p.back, nil })
	for _, r := range back {
		if err := b.seller.Refund(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// expired reports whether nothing of a lease is in the pool any more.
func (b *Buyer) expired(l *lease) bool {
	return b.seller.Now()+b.ahead >= l.expires
}

// refund sends permits of a lease that has expired back to the store, which may refuse, or not hear of it.
func (b *Buyer) refund(l *lease, permits int) {
	var r Refund
	b.with(func(int64, *pool) { r = l.refund(permits) })
	if r.Permits > 0 {
		_ = b.seller.Refund(context.Background(), r)
	}
}
