package pacek8s

import (
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A promise is of a permit that is taken when its item goes: the limiter promises none for so long.
type promise struct {
	at    time.Time
	timer *time.Timer

	mu   sync.Mutex
	held *reserve.Reservation // once it is taken
}

func (p *promise) take(by reserve.Reserver) {
	r, err := by.ReserveWithin(context.Background(), 1, reserve.Forever)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = &r
}

func (p *promise) Permits() int                   { return 1 }
func (p *promise) At() time.Time                  { return p.at }
func (p *promise) Delay() time.Duration           { return max(0, time.Until(p.at)) }
func (p *promise) Wait(ctx context.Context) error { return nil } // nobody waits for it
func (p *promise) Cancel()                        { p.Settle(0) }

func (p *promise) Settle(actual int) {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		p.held.Settle(actual)
	}
}
