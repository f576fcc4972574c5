package leases

import (
	"context"
	"sync"

	"github.com/nextfree/pace/reserve"
)

// A leased is a promise of permits out of the pool.
type leased struct {
	reserve.Reservation
	buyer *Buyer
	lease *lease // the newest when the promise was made

	mu        sync.Mutex
	over      bool // cancelled, settled, or given up
	cancelled bool // too late for the pool
}

func (p *leased) Cancel() { p.Settle(0) }

// Settle gives permits back to the pool while it holds permits bought at the same time. Later it gives them back to the
// store, which knows what has overflowed since. Permits that were used beyond the promise are charged there too.
func (p *leased) Settle(actual int) {
	reserved := p.Permits()
	actual = max(0, actual)
	late := p.buyer.expired(p.lease) && actual < reserved
	p.mu.Lock()
	was := p.over
	p.over, p.cancelled = true, p.cancelled || !was && late && actual == 0
	p.mu.Unlock()
	switch {
	case was:
	case late:
		p.Reservation.Settle(reserved)
		p.buyer.refund(p.lease, reserved-actual)
	case actual > reserved:
		p.Reservation.Settle(reserved)
		p.buyer.seller.Charge(actual - reserved)
	default:
		p.Reservation.Settle(actual)
	}
}

// Wait gives the permits back if it fails, as Reservation's does.
func (p *leased) Wait(ctx context.Context) error {
	p.mu.Lock()
	cancelled := p.cancelled
	p.mu.Unlock()
	if cancelled {
		return reserve.ErrCancelled
	}
	err := p.Reservation.Wait(ctx)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
	}
	return err
}
