package shared

import (
	"context"
	"sync"

	"github.com/nextfree/pace/reserve"
)

// A leased is a promise of permits out of the pool.
type leased struct {
	reserve.Reservation
	leases *leases
	lease  *lease // the newest when it was made

	mu      sync.Mutex
	over    bool // cancelled, settled, or given up
	nothing bool // at 0, too late for the pool
}

func (p *leased) Cancel() { p.Settle(0) }

// Settle gives permits back to the pool while it holds those bought at the same time, and else to
// Redis, which knows what has been spilled since. Permits that were used beyond the promise are
// charged there too.
func (p *leased) Settle(actual int) {
	reserved := p.Permits()
	actual = max(0, actual)
	late := p.leases.expired(p.lease) && actual < reserved
	p.mu.Lock()
	was := p.over
	p.over, p.nothing = true, p.nothing || !was && late && actual == 0
	p.mu.Unlock()
	switch {
	case was:
	case late:
		p.Reservation.Settle(reserved)
		p.leases.refund(p.lease, reserved-actual)
	case actual > reserved:
		p.Reservation.Settle(reserved)
		p.leases.limiter.charge(actual - reserved)
	default:
		p.Reservation.Settle(actual)
	}
}

// Wait gives the permits back if it fails, as Reservation's does.
func (p *leased) Wait(ctx context.Context) error {
	p.mu.Lock()
	nothing := p.nothing
	p.mu.Unlock()
	if nothing {
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

// expired reports whether nothing of a lease is in the pool any more.
func (h *leases) expired(l *lease) bool {
	return h.limiter.now()+h.ahead >= l.expires
}

// refund sends permits of a lease that has expired back to Redis, which may refuse, or not hear of
// it.
func (h *leases) refund(l *lease, permits int) {
	var r refund
	h.with(func(int64, *pool) { r = l.refund(permits) })
	if r.permits > 0 {
		_ = h.limiter.do(context.Background(), changes(change{refund: &r}))
	}
}
