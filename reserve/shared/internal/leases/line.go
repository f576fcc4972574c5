package leases

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// A Request is what a caller asks for.
type Request struct {
	Permits  int
	MaxWait  int64
	Deadline int64 // ready by then; or saturate.Never
	By       int64 // an answer is wanted by then; 0: by the deadline
}

// An Answer is what a caller is told.
type Answer struct {
	Promise   reserve.Promise // nil: refused, undecided, or an error
	Wait      int64           // if refused: how long it would have waited
	Undecided bool            // the caller has to ask the store by itself
	Charged   bool            // with an error: the store may have charged the permits
}

// An outcome tells the callers in the line that a purchase failed or was refused, so that they need not try again.
type outcome struct {
	number  int64
	err     error        // nil: refused
	charged atomic.Int64 // permits that the store may have charged although there was no answer
	ready   int64        // no request would be granted before
}

// pays reports whether the store may have charged the permits of a request, and counts them as used.
func (o *outcome) pays(permits int) bool {
	return o.charged.Load() > 0 && o.charged.Add(-int64(permits)) >= 0
}

// settled tells the callers in the line how a purchase ended. The caller must have the turn.
func (b *Buyer) settled(o *outcome) {
	o.number = b.outcome.Load().number + 1
	b.outcome.Store(o)
}

// Reserve answers a request out of the pool. Where that has too little, the callers line up, and the first buys what
// all of them want. A refusal is demand, too.
func (b *Buyer) Reserve(ctx context.Context, r Request) (Answer, error) {
	a, err := b.ask(ctx, r)
	if err == nil && a.Promise == nil && !a.Undecided {
		b.lookFor()
	}
	return a, err
}

// rounds is how often a caller whose turn it is looks for permits in the pool, and buys some. One round is enough,
// unless others take them or give some back in the same instant. After that it asks the store for its own permits.
const rounds = 4

func (b *Buyer) ask(ctx context.Context, r Request) (Answer, error) {
	if err := done.Cause(ctx); err != nil {
		return Answer{}, err
	}
	joined := b.outcome.Load().number
	if b.line.Load() == 0 {
		if a, ok := b.serve(r); ok {
			return a, nil
		}
	}
	b.line.Add(int64(r.Permits))
	defer b.line.Add(-int64(r.Permits))
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	defer func() { <-b.turn }()
	for range rounds {
		if a, ok := b.serve(r); ok {
			return a, nil
		}
		if a, err, ok := b.told(r, joined); ok {
			return a, err
		}
		if a, bought, err := b.buy(ctx, r); err != nil || !bought {
			return a, err
		}
	}
	return Answer{Undecided: true}, nil
}

// serve answers a request out of the pool, or returns false: then more has to be bought.
func (b *Buyer) serve(r Request) (a Answer, ok bool) {
	within := r.MaxWait
	if r.Deadline != saturate.Never {
		within = max(-1, min(within, r.Deadline-b.seller.Now()))
	}
	if within < 0 {
		return b.refuse(r, 1), true
	}
	l := &leased{buyer: b, lease: b.newest.Load()}
	var err error
	l.Reservation, err = b.local.ReserveWithin(context.Background(), r.Permits, time.Duration(within))
	switch e := err.(type) {
	case nil:
		return Answer{Promise: l}, true
	case *reserve.WaitError:
		if isUncovered(e) {
			return Answer{}, false
		}
		return b.refuse(r, int64(e.Wait)), true
	}
	return Answer{}, true
}

// told answers a request by how a purchase ended that was made since it joined the line.
func (b *Buyer) told(r Request, joined int64) (a Answer, err error, ok bool) {
	o := b.outcome.Load()
	switch now := b.seller.Now(); {
	case o.number == joined:
		return Answer{}, nil, false
	case o.err != nil:
		return Answer{Charged: o.pays(r.Permits)}, o.err, true
	case o.ready > min(r.Deadline, saturate.Add(now, r.MaxWait)):
		return b.refuse(r, o.ready-now), nil, true
	}
	return Answer{}, nil, false
}

func (b *Buyer) refuse(r Request, wait int64) Answer {
	b.refused.Add(int64(r.Permits))
	return Answer{Wait: max(1, wait)}
}

// lookFor buys permits after a refusal, at most once in a quarter of a horizon. The store refuses callers that only try
// while it is in debt to a process that buys in advance. So they must buy like that process, or it keeps the limiter.
func (b *Buyer) lookFor() {
	now, last := b.seller.Now(), b.looked.Load()
	if now-last >= b.horizon/4 && b.looked.CompareAndSwap(last, now) {
		go b.prefetch()
	}
}
