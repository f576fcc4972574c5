package inbound

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/allornothing"
)

// ErrQueueFull is the reason of a refusal where the wait was short enough, but too many requests waited.
var ErrQueueFull = errors.New("inbound: the queue is full")

// A queue bounds how many requests wait in their limiters.
type queue struct {
	places int

	mu      sync.Mutex
	waiting int
	byPlace map[place]int // how many of them wait there

	queued atomic.Uint64
	waits  histogram
}

type place struct {
	tier int
	key  uint64 // 0: it is all requests' limiter
}

// join takes a place, of which a key has at most as many as are left: Choudhury and Hahne's threshold for shared
// buffers (1998).
func (q *queue) join(p place) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.places - q.waiting
	if left < 1 || p.key != 0 && q.byPlace[p] >= left {
		return false
	}
	q.byPlace[p]++
	q.waiting++
	return true
}

func (q *queue) leave(p place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.byPlace[p]--; q.byPlace[p] == 0 {
		delete(q.byPlace, p)
	}
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

func (m *Middleware) wait(ctx context.Context, r *http.Request, claims []claim) (body *earlyBody, tier int, err error) {
	last, longest := allornothing.Last(len(claims), func(i int) time.Duration {
		if m.tiers[i].dryRun {
			return 0
		}
		return claims[i].Reservation.Delay()
	})
	if longest == 0 {
		return nil, 0, nil
	}
	q := &m.queue
	at := place{tier: last, key: claims[last].client.key}
	if !q.join(at) {
		m.counts[last].refused.Add(1)
		allornothing.Cancel(len(claims), func(i int) { claims[i].Cancel() })
		return nil, last, &queueFull{wait: longest}
	}
	leave := sync.OnceFunc(func() { q.leave(at) })
	defer leave()
	q.queued.Add(1)
	begin := time.Now()
	defer func() {
		took := time.Since(begin)
		q.waits.add(took)
		if m.onWait != nil && err == nil {
			m.onWait(r, took)
		}
	}()
	body = readEarly(r)
	tier, err = allornothing.Wait(len(claims), last, func(i int) error {
		if m.tiers[i].dryRun || claims[i].Reservation.Permits() == 0 {
			return nil
		}
		// A pause of the limiter meanwhile may be too long for the request's deadline.
		if err := claims[i].Reservation.Wait(ctx); err != nil && m.stops(ctx, r, i, err) {
			return err
		}
		return nil
	}, func(i int) {
		leave() // before giving back, which takes a while if a limiter is elsewhere
		claims[i].Cancel()
	})
	return body, tier, err
}

type queueFull struct{ wait time.Duration }

func (e *queueFull) Error() string        { return ErrQueueFull.Error() }
func (e *queueFull) Is(target error) bool { return target == ErrQueueFull }
