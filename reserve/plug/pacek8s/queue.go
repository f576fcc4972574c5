package pacek8s

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// A QueueLimiter is a workqueue.TypedRateLimiter[T]: it says when an item is tried again. It comes from
// [NewQueueLimiter]. All methods may be called at the same time.
//
// It remembers the last 65,536 to 131,072 items. Others have failed 0 times.
type QueueLimiter[T comparable] struct {
	overall reserve.Reserver
	perItem func(T) reserve.Reserver
	most    int // items in each of the two maps

	mu            sync.Mutex
	recent, older map[T]*item
	last          time.Time // when the last item goes that waits for longer than overall promises
}

type item struct {
	failures int
	held     permits // the latest; nil: none, or counted
}

const (
	most   = 1 << 16
	failed = time.Second // an item waits for so long if its limiter fails
)

// NewQueueLimiter returns a limiter by which an item takes one permit of overall and one of its own limiter, for
// instance by For of *keyed.Limiters. Either may be nil. It returns a *[reserve.ValueError] if both are. For a wait
// that grows with each failure as well, see workqueue.NewTypedMaxOfRateLimiter.
func NewQueueLimiter[T comparable](overall reserve.Reserver, perItem func(T) reserve.Reserver) (
	*QueueLimiter[T], error,
) {
	if overall != nil || perItem == nil {
		if err := checked("the limiter", overall); err != nil {
			return nil, err
		}
	}
	return &QueueLimiter[T]{overall: overall, perItem: perItem, most: most, recent: map[T]*item{}}, nil
}

// When reserves a permit and returns how long it is until then. An item whose permit has not come due keeps it: at 1/s,
// an item that is asked for again after 200 ms has 800 ms to wait. An item may come out of the workqueue later than its
// permit, which therefore counts from the next When or [QueueLimiter.Forget] for it.
//
// If the permit would come later than the limiter's longest wait ([reserve.WithMaxWait]), the item goes when there is
// one, and takes it then. After any other failure it waits 1 s.
func (q *QueueLimiter[T]) When(of T) time.Duration {
	q.mu.Lock()
	i := q.remember(of)
	i.failures++
	wait, used := i.wait(), i.used()
	q.mu.Unlock()
	if wait > 0 {
		return wait
	}
	if used != nil {
		q.charge(of, used)
	}
	r, wait, err := q.reserve(of) // under no lock: it may take a while
	if err != nil {
		return failed
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i = q.remember(of) // again: it may have been forgotten meanwhile
	i.failures = max(1, i.failures)
	if before := i.wait(); before > 0 { // another worker has just reserved one for it
		r.cancel()
		return before
	}
	i.held = r
	return wait
}

// charge counts a permit of an item's own limiter, which was due, as used now.
func (q *QueueLimiter[T]) charge(of T, used permits) {
	if q.perItem == nil {
		return
	}
	used[0].Cancel()
	if by := q.perItem(of); checked("", by) == nil {
		_, _ = by.ReserveWithin(context.Background(), 1, reserve.Forever)
	}
}

// Forget forgets an item, and gives its permit back if that has not come due. An item that waits in the workqueue comes
// out at its time.
func (q *QueueLimiter[T]) Forget(of T) {
	if used := q.forget(of); used != nil {
		q.charge(of, used)
	}
}

func (q *QueueLimiter[T]) forget(of T) (used permits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, items := range []map[T]*item{q.recent, q.older} {
		if i := items[of]; i.wait() > 0 {
			i.held.cancel()
		} else if used == nil {
			used = i.used()
		}
		delete(items, of)
	}
	return used
}

// NumRequeues returns how often When was asked for an item since it was forgotten.
func (q *QueueLimiter[T]) NumRequeues(of T) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := cmp.Or(q.recent[of], q.older[of]); i != nil {
		return i.failures
	}
	return 0
}

// permits are of an item's own limiter, if it has one, and of the overall one.
type permits []*reserve.Reservation

func (p permits) delay() (longest time.Duration) {
	for _, r := range p {
		longest = max(longest, r.Delay())
	}
	return longest
}

func (p permits) cancel() {
	for _, r := range p {
		r.Cancel()
	}
}

func (i *item) wait() time.Duration {
	if i == nil {
		return 0
	}
	return i.held.delay()
}

// used returns permits that are due, once; or nil.
func (i *item) used() (held permits) {
	if i != nil && i.wait() == 0 {
		held, i.held = i.held, nil
	}
	return held
}

// remember returns what is known of an item. A full map forgets the items that nobody asked for since it was last full.
// The limiter must be locked.
func (q *QueueLimiter[T]) remember(of T) *item {
	if i := q.recent[of]; i != nil {
		return i
	}
	if len(q.recent) >= q.most {
		q.recent, q.older = map[T]*item{}, q.recent
	}
	i := q.older[of]
	if i == nil {
		i = new(item)
	}
	q.recent[of] = i
	return i
}

// reserve reserves, and returns when the item goes: at the latest of its limits' times.
func (q *QueueLimiter[T]) reserve(of T) (held permits, wait time.Duration, err error) {
	var limits []reserve.Reserver
	if q.perItem != nil {
		limits = append(limits, q.perItem(of))
		if err := checked("the limiter of an item", limits[0]); err != nil {
			return nil, 0, err
		}
	}
	if q.overall != nil {
		limits = append(limits, q.overall)
	}
	for i, by := range limits {
		r, err := q.permit(by, q.overall != nil && i == len(limits)-1)
		if err != nil {
			held.cancel()
			return nil, 0, err
		}
		held = append(held, r)
	}
	return held, held.delay(), nil
}

// permit reserves a permit, or promises one that is taken when the item goes: where the limiter promises none for so
// long, or others wait for it like that.
func (q *QueueLimiter[T]) permit(by reserve.Reserver, overall bool) (*reserve.Reservation, error) {
	late := new(reserve.WaitError)
	if !overall || !q.behind() {
		r, err := by.ReserveWithin(context.Background(), 1, reserve.Forever)
		if err == nil {
			return &r, nil
		} else if !errors.As(err, &late) {
			return nil, err
		}
	}
	p := &promise{at: time.Now().Add(late.Wait)}
	if overall {
		p.at = q.line(p.at)
	}
	p.timer = time.AfterFunc(time.Until(p.at), func() { p.take(by) })
	r := reserve.NewReservation(p)
	return &r, nil
}

// behind reports whether items wait for longer than overall promises.
func (q *QueueLimiter[T]) behind() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last.After(time.Now())
}

// line returns when another such item goes.
func (q *QueueLimiter[T]) line(at time.Time) time.Time {
	rate := limit.Finite(limit.Of(q.overall))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last.After(time.Now()) && rate > 0 {
		if next := q.last.Add(time.Duration(float64(time.Second) / rate)); next.After(at) {
			at = next
		}
	}
	q.last = at
	return at
}
