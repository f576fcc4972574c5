package leases

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A Buyer buys permits in advance and hands them to the callers of this process. The methods of a nil Buyer are those
// of one that never has any. All methods may be called at the same time.
type Buyer struct {
	seller  Seller
	horizon int64
	maxWait int64            // of the seller's policy
	local   *reserve.Limiter // hands the permits out; the pool is its ledger
	ahead   int64            // what the local limiter's clock is ahead of the seller's

	mu     sync.Mutex
	policy *reserve.Policy
	visit  func(now int64, p *pool) // what the policy's Change does

	turn    chan struct{} // held by the caller that buys; callers get it in order
	line    atomic.Int64  // permits that the callers in the line want
	outcome atomic.Pointer[outcome]
	newest  atomic.Pointer[lease]
	refused atomic.Int64 // permits that were asked for and refused, since the last purchase
	looked  atomic.Int64 // when a refusal was last the reason to buy
	panics  atomic.Uint64
	idle    *time.Timer // when nothing was bought for long, what is left goes back
}

// longestWait of a caller, 100 years, is less than the pool's time for permits that were not bought.
const longestWait = 100 * 365 * 24 * time.Hour

// New returns a buyer that holds nothing. It buys what its callers have lately used in the horizon. None of them waits
// longer than maxWait.
func New(seller Seller, horizon, maxWait time.Duration) (*Buyer, error) {
	b := &Buyer{
		seller: seller, horizon: int64(horizon), maxWait: int64(maxWait), ahead: math.MinInt64,
		turn: make(chan struct{}, 1),
	}
	b.outcome.Store(&outcome{})
	_, upfront := seller.Terms()
	p, err := reserve.NewPolicy(reserve.Variant{
		Package: "shared", Limiter: "a lease",
		Ledger: func(now int64, _ func(int64) time.Time) reserve.Ledger {
			b.ahead = max(b.ahead, now-seller.Now())
			return newPool(upfront, b.horizon, func() { go b.prefetch() })
		},
		Change: func(now int64, of reserve.Ledger) { b.visit(now, of.(*pool)) },
	}, 1, reserve.WithMaxWait(min(maxWait, longestWait)))
	if err != nil {
		return nil, err
	}
	b.policy = p
	for range 8 { // between its two clocks the process may have been interrupted, but hardly each time
		b.local = p.Limiter()
	}
	return b, nil
}

// with runs visit on the pool, and then wakes callers whose times have changed.
func (b *Buyer) with(visit func(now int64, p *pool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.visit = visit
	_ = b.local.SetPolicy(b.policy) // calls its Change under the limiter's lock
}

// Lends reports whether requests for so many permits are answered out of leases: of fewer than the rate gives in the
// horizon.
func (b *Buyer) Lends(permits int) bool {
	return b != nil && permits > 0 && float64(permits) < b.most()
}

// most returns how many permits a process holds at most: those of a horizon.
func (b *Buyer) most() float64 {
	curve, _ := b.seller.Terms()
	if curve.Interval == 0 { // there is no limit
		return 0
	}
	return curve.Rate * time.Duration(b.horizon).Seconds()
}

// TryAcquire takes permits out of the pool if they may be used now.
func (b *Buyer) TryAcquire(permits int) bool {
	return b.line.Load() == 0 && b.local.TryAcquire(permits)
}

// Acquire waits for permits of the pool, and returns false if more have to be bought.
func (b *Buyer) Acquire(ctx context.Context, permits int) (waited time.Duration, err error, ok bool) {
	if b.line.Load() > 0 {
		return 0, nil, false
	}
	waited, err = b.local.Acquire(ctx, permits)
	return waited, err, !isUncovered(err)
}

// isUncovered reports whether the pool has refused a request because it does not hold the permits.
func isUncovered(err error) bool {
	e, refused := err.(*reserve.WaitError)
	return refused && e.Wait > longestWait
}

// Missed counts permits that a caller was refused without asking for them here: they are demand like others.
func (b *Buyer) Missed(permits int) {
	if b.Lends(permits) {
		b.refused.Add(int64(permits))
		b.lookFor()
	}
}

// Free returns how many permits of the pool are promised to no caller.
func (b *Buyer) Free() (free int64) {
	if b != nil {
		b.with(func(_ int64, p *pool) { free = max(0, p.free()) })
	}
	return free
}

// Stored returns how many permits of the pool are ready and free.
func (b *Buyer) Stored() float64 {
	if b == nil {
		return 0
	}
	return b.local.Stored()
}

// NextFree returns when a caller would get a permit of the pool, if it has any.
func (b *Buyer) NextFree() (at time.Time, ok bool) {
	if b == nil {
		return at, false
	}
	b.with(func(now int64, p *pool) {
		p.advance(now)
		ok = p.free() > 0
	})
	return b.local.NextFree(), ok
}

// Panics returns how often the store's client has panicked in a goroutine of the buyer's.
func (b *Buyer) Panics() uint64 {
	if b == nil {
		return 0
	}
	return b.panics.Load()
}
