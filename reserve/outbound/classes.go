package outbound

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	binding "github.com/nextfree/pace/reserve/internal/late"
)

// WithClasses has waiting requests go in the order of package fair instead of first come, first served: people before a batch, tenants
// by their shares. The function returns a request's class and tenant; nil: those that [fair.With] has put into the request's context. The class ""
// is the first one, if no other has that name.
//
//	outbound.New(nil, limiter, outbound.WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"}))
//
// The order holds among the requests with the same keys (see [PerKey]). Shares are of the permits of the limit at which a request costs most, such as
// tokens; what a request has really used corrects its tenant's account. Tenants have equal weights. A retry keeps
// its place among the requests of its tenant.
//
// Only one request is at the limits at a time. If a busy machine wakes it later than its slot, that time is lost,
// unless the limiter saves permits: at thousands of requests a second, give it some milliseconds of burst. Places of
// [WithMaxInFlight] are given in the order of the requests, whatever their classes.
//
// It returns the errors of [fair.New].
func WithClasses(of func(*http.Request) (class, tenant string), classes ...fair.Class) Option {
	if of == nil {
		of = func(r *http.Request) (class, tenant string) { return fair.From(r.Context()) }
	}
	return func(s *settings) error {
		if _, err := fair.New(new(turns), classes, fair.WithTenants(nil)); err != nil {
			return err
		}
		s.classOf, s.classes = of, classes
		return nil
	}
}

// turns is what stands behind a queue of calls with the same keys: it lets one call at a time go on to the limits. The call's context
// says which call.
type turns struct {
	mu   sync.Mutex
	rate float64 // of the limit at which calls cost most; 0: it is not known
}

// Rate returns the rate by which forecasts are made.
func (s *turns) Rate() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate
}

// A classQueue is the queue of the calls with the same keys.
type classQueue struct {
	turns *turns
	queue *fair.Queue
}

type callKey struct{}

// ReserveWithin begins a call's turn.
func (s *turns) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return reserve.Reservation{}, valueError("the context", ctx, "that of a call")
	}
	t := &turn{c: c, n: n, leave: max(0, n-c.limits[c.dearest].Permits)}
	t.ctx, t.stop = context.WithCancelCause(c.ctx)
	if maxWait <= 0 && c.t.maxWait > 0 || c.tryNow { // its trial has shown that there is room
		t.took = true
		if err := t.acquire(0); err != nil {
			c.endProbes()
			t.stop(nil)
			return reserve.Reservation{}, err
		}
		t.ready = true
	}
	return reserve.NewReservation(t), nil
}

// A turn is a call's time at the limits. It is a promise that is kept when the call has its permits; a more urgent
// call may take the turn away until then.
type turn struct {
	c     *call
	n     int
	leave int // so many permits more must be left: it is a trial
	ctx   context.Context
	stop  context.CancelCauseFunc

	mu    sync.Mutex
	took  bool // acquire has begun
	ready bool
	over  bool
	done  chan struct{} // closed when acquire has returned; nil: it does not run
}

// least is what a turn seems to take: nobody knows until it is over.
const least = 100 * time.Microsecond

func (t *turn) Permits() int  { return t.n }
func (t *turn) At() time.Time { return t.c.t.now().Add(t.Delay()) }

func (t *turn) Delay() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready {
		return 0
	}
	return least
}

// Wait waits for the permits of all limits. The call itself waits, so its limits are used by one goroutine.
func (t *turn) Wait(ctx context.Context) error {
	t.mu.Lock()
	if t.over || t.ready {
		defer t.mu.Unlock()
		if t.over {
			return reserve.ErrCancelled
		}
		return nil
	}
	t.took = true
	done := make(chan struct{})
	t.done = done
	t.mu.Unlock()
	defer close(done)
	err := t.acquire(reserve.Forever)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = nil
	switch {
	case t.over:
		t.giveBack()
		return reserve.ErrCancelled
	case err != nil:
		t.over = true
		t.c.endProbes()
		t.stop(nil)
		return err
	}
	t.ready = true
	return nil
}

func (t *turn) acquire(maxWait time.Duration) error {
	c := t.c
	if t.leave > 0 {
		c.limits[c.dearest].Permits += t.leave
		defer func() { c.limits[c.dearest].Permits -= t.leave }()
	}
	err := c.t.lines.Acquire(t.ctx, c.keys, c.number, c.limits, maxWait)
	if cause := context.Cause(c.ctx); err != nil && errors.Is(err, errTaken) && cause != nil {
		err = cause
	}
	return err
}

// errTaken ends a turn that a more urgent call gets.
var errTaken = errors.New("outbound: a more urgent call has taken the turn")

func (t *turn) Cancel() { t.Settle(0) }

// Settle takes the turn away, and gives back what the call has; it returns when that is done. Once the call has gone the turn is over, and what was used
// concerns each limit by itself.
func (t *turn) Settle(actual int) {
	t.mu.Lock()
	if t.over || actual > 0 {
		t.mu.Unlock()
		return
	}
	t.over = true
	if t.ready {
		t.giveBack()
	}
	done := t.done
	t.mu.Unlock()
	t.stop(errTaken)
	if done != nil {
		<-done
	}
}

func (t *turn) giveBack() {
	if t.c.gone {
		return
	}
	for i := range t.c.limits {
		t.c.limits[i].Held.Cancel()
	}
	t.c.endProbes()
}

// inOrder waits for the permits of all limits, in the order of the classes.
func (c *call) inOrder(maxWait time.Duration) error {
	if err := c.t.lines.Refuse(c.ctx, c.keys, c.number, c.limits, maxWait); err != nil {
		return err
	}
	q := c.t.classQueue(c.keys)
	c.dearest, c.gone, c.tryNow = 0, false, maxWait <= 0
	for i := range c.limits {
		if c.limits[i].Permits > c.limits[c.dearest].Permits {
			c.dearest = i
		}
	}
	if by, ok := c.limits[c.dearest].By.(interface{ Rate() float64 }); ok {
		q.turns.mu.Lock()
		if q.turns.rate = by.Rate(); math.IsInf(q.turns.rate, 1) {
			q.turns.rate = 0
		}
		q.turns.mu.Unlock()
	}
	class, tenant := c.t.classOf(c.request)
	ctx := binding.WithRank(context.WithValue(c.ctx, callKey{}, c), &c.rank)
	r, err := q.queue.Tenant(class, tenant).ReserveWithin(ctx, c.limits[c.dearest].Permits, maxWait)
	if err == nil {
		err = r.Wait(c.ctx)
	}
	if err == nil {
		c.gone, c.account = true, &r
	}
	return err
}

// account corrects the account of the call's tenant.
func (c *call) correct(a *charge, used int) {
	if c.account != nil && a.Limit == &c.limits[c.dearest] {
		c.account.Settle(used)
	}
}

// classQueue returns the queue of the calls with these keys.
func (t *Transport) classQueue(keys any) *classQueue {
	if q, ok := t.classQueues.get(keys); ok {
		return q
	}
	s := new(turns)
	opts := []fair.Option{fair.WithTenants(nil)}
	if t.clock != nil {
		opts = append(opts, fair.WithClock(t.clock))
	}
	return t.classQueues.getOr(keys, &classQueue{s, reserve.Must(fair.New(s, t.classes, opts...))})
}
