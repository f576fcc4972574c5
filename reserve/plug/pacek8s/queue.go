package pacek8s

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

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
}

type item struct {
	failures int
	held     *reserve.Reservation // the latest; nil: none
}

const (
	most   = 1 << 16
	failed = time.Second // an item waits for so long if its limiter fails
)

// NewQueueLimiter returns a limiter by which an item takes one permit of overall and one of its own limiter. Either may
// be nil. The limiters of package keyed have room for many items in bounded memory:
//
//	perItem := keyed.New(func(string) (*reserve.Policy, error) { return oneInTenSeconds, nil })
//	limiter, err := pacek8s.NewQueueLimiter(overall, perItem.For)
//
// It returns a *[reserve.ValueError] if both are nil. For a wait that grows with each failure as
// well, see workqueue.NewTypedMaxOfRateLimiter.
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

// When reserves a permit and returns how long it is until then. An item whose permit has not come due keeps it. At 1/s,
// an item that is asked for again after 200 ms, of 1 s, has 800 ms to wait.
//
// If the permit would come later than the limiter's longest wait ([reserve.WithMaxWait]), the item waits as long,
// without a permit. After any other failure it waits 1 s.
func (q *QueueLimiter[T]) When(of T) time.Duration {
	q.mu.Lock()
	i := q.remember(of)
	i.failures++
	wait := i.wait()
	q.mu.Unlock()
	if wait > 0 {
		return wait
	}
	r, err := q.reserve(of) // under no lock: it may take a while
	if late := new(reserve.WaitError); errors.As(err, &late) {
		return late.Wait
	} else if err != nil {
		return failed
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i = q.remember(of) // again: it may have been forgotten meanwhile
	i.failures = max(1, i.failures)
	if wait := i.wait(); wait > 0 { // another worker has just reserved one for it
		r.Cancel()
		return wait
	}
	i.held = &r
	return r.Delay()
}

// Forget forgets an item, and gives its permit back if that has not come due. An item that waits in the workqueue comes
// out at its time.
func (q *QueueLimiter[T]) Forget(of T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, items := range []map[T]*item{q.recent, q.older} {
		if i := items[of]; i.wait() > 0 {
			i.held.Cancel()
		}
		delete(items, of)
	}
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

func (i *item) wait() time.Duration {
	if i == nil || i.held == nil {
		return 0
	}
	return i.held.Delay()
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

func (q *QueueLimiter[T]) reserve(of T) (reserve.Reservation, error) {
	by := q.overall
	if q.perItem != nil {
		by = q.perItem(of)
		if err := checked("the limiter of an item", by); err != nil {
			return reserve.Reservation{}, err
		}
		if q.overall != nil {
			by = reserve.All(by, q.overall)
		}
	}
	return by.ReserveWithin(context.Background(), 1, reserve.Forever)
}
