package shared

import (
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve"
)

type promise struct {
	limiter *Limiter

	mu      sync.Mutex
	slot    slot
	permits int   // the last of the slot
	ready   int64 // on the limiter's clock
	unsure  bool  // it asks again when it is ready
	asking  bool  // it does
	settled bool
	used    int           // when it was settled
	moved   chan struct{} // closed when anything changes; nil until a caller sleeps
	using   *time.Timer   // tells that the use goes on; nil: it has not begun
	over    bool          // the use has ended
}

func (p *promise) Permits() int { return p.permits }

func (p *promise) At() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limiter.begin.Add(time.Duration(p.ready))
}

func (p *promise) Delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay()
}

// delay asks again if the time has come, and then is longer. The lock is held.
func (p *promise) delay() time.Duration {
	wait := time.Duration(max(0, p.ready-p.limiter.now()))
	if wait > 0 || !p.unsure || p.settled {
		return wait
	}
	if !p.asking {
		p.asking = true
		go p.askAgain()
	}
	return time.Millisecond
}

// askAgain gives the permits back, and reserves as many, by one call. If that fails, the promise stands.
func (p *promise) askAgain() {
	l, r := p.limiter, buys(p.permits, int64(reserve.Forever), never)
	r.refund, r.uses = &refund{slot: p.slot, permits: p.permits}, true
	err := errAborted // unless the client returns
	defer func() {
		_ = recover()
		p.mu.Lock()
		p.asking, p.unsure = false, false
		if err == nil && r.granted {
			p.slot, p.ready, p.unsure = r.slot, r.ready, r.unsure
		}
		late := p.settled
		p.move()
		p.mu.Unlock()
		if late {
			p.giveBack(l.post)
		}
	}()
	err = l.do(context.Background(), r)
}

// move wakes callers. The lock is held.
func (p *promise) move() {
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

func (p *promise) Wait(ctx context.Context) error {
	for {
		moved, wait, cancelled := p.watch()
		if cancelled {
			return reserve.ErrCancelled
		}
		if err := done.Cause(ctx); err != nil {
			p.settle(0, p.limiter.post)
			return err
		}
		if wait == 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok {
			if left := time.Until(deadline); left < wait {
				p.settle(0, p.limiter.post)
				return &reserve.WaitError{Wait: wait, MaxWait: left, Cause: context.DeadlineExceeded, Limit: p.limiter.name}
			}
		}
		wake.Sleep(ctx, wait, moved)
	}
}

func (p *promise) watch() (moved <-chan struct{}, wait time.Duration, cancelled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	moved = p.moved // before delay, which may change it soon
	return moved, p.delay(), p.settled && p.used == 0
}

func (p *promise) Cancel() { p.Settle(0) }

func (p *promise) Settle(actual int) {
	p.settle(actual, func(r *request) {
		if p.limiter.do(context.Background(), r) == nil { // else the permits are lost, and no promise is broken
			p.mu.Lock()
			defer p.mu.Unlock()
			p.ready = min(p.ready, r.ready)
			p.move()
		}
	})
}

func (p *promise) settle(actual int, tell func(*request)) {
	p.mu.Lock()
	if p.settled {
		p.mu.Unlock()
		return
	}
	p.settled, p.used = true, max(0, actual)
	asking, inUse := p.asking, p.using != nil && !p.over
	p.move()
	p.mu.Unlock()
	if inUse {
		p.End()
	}
	if !asking {
		p.giveBack(tell)
	}
}

func (p *promise) giveBack(tell func(*request)) {
	switch l, n := p.limiter, p.permits; {
	case p.used > n:
		l.charge(p.used - n)
	case p.used < n:
		tell(changes(change{refund: &refund{slot: p.slot, permits: n - p.used}}))
	}
}

func (p *promise) Begin() {
	l := p.limiter
	p.mu.Lock()
	defer p.mu.Unlock()
	if !l.tracksUses() || p.using != nil || p.settled || p.delay() > 0 {
		return
	}
	p.using = time.AfterFunc(tellUse, p.goesOn)
	if !l.uses.Swap(true) { // so that other processes know
		p.tellUse(false)
	}
}

func (p *promise) goesOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.using.Reset(renewUse)
		p.tellUse(false)
	}
}

func (p *promise) End() {
	p.Begin()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.using == nil || p.over {
		return
	}
	p.using.Stop()
	p.over = true
	p.tellUse(true)
}

func (p *promise) tellUse(over bool) {
	l := p.limiter
	l.post(changes(change{use: &told{record: p.slot.record, at: l.now(), over: over}}))
}

// tracksUses reports whether the ledger counts by use. Permits that are bought ahead count by their grant.
func (l *Limiter) tracksUses() bool { return l.terms.Load().tracks && l.stock.most == 0 }

func (l *Limiter) post(r *request) {
	if !l.node().circuit.isOpen() {
		l.queue.post(r)
	}
}

// charge takes used permits: now, or when the store is back.
func (l *Limiter) charge(n int) {
	r := changes(change{charge: charge{permits: n}})
	if l.do(context.Background(), r) != nil && !r.charged {
		l.owe(n)
	}
}
