package queue

import (
	"reflect"
	"slices"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// watch has local limiters tell the queue of changes.
func (q *Queue) watch(limits map[*Limit]bool) {
	q.watcher = &engine.Watcher{Owner: q, Tell: func(bool) {
		q.version.Add(1)
		q.call()
	}}
	for i := range q.options {
		o := &q.options[i]
		o.watcher = &engine.Watcher{Owner: q, Tell: func(bool) {
			o.known.Store(0) // an answer from before
			q.version.Add(1)
			q.call()
		}}
	}
	q.prompt = true
	for l := range limits {
		of := l.By.Traits()
		q.prompt = q.prompt && (!of.Blocks || limit.Queues(l.By))
		q.blocks = q.blocks || of.Blocks
		q.distant = of.Distant && len(limits) == 1
		if by := l.local(); by != nil {
			by.Watch(q.watcher)
		}
	}
}

// A source is what a reservation turns out to be of, and tells of changes.
type source interface{ Watch(w *engine.Watcher) }

// sourceOf returns the source of a reservation at a limit that is not watched, or nil.
func sourceOf(r *reserve.Reservation) source {
	if l := (*engine.Reservation)(r).Limiter(); l != nil {
		return l
	}
	if p, ok := (*engine.Reservation)(r).Promise().(promise); ok {
		return p.queue
	}
	return nil
}

func (q *Queue) Watch(w *engine.Watcher) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.outer.Add(w)
	q.nested.Store(true)
}

func (q *Queue) tell() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.outer.Tell(true, nil)
	q.nested.Store(len(q.outer) > 0)
}

// call looks in a goroutine: its caller holds a limiter's lock.
func (q *Queue) call() {
	if (q.waiting.Load() > 0 || q.nested.Load()) && q.called.CompareAndSwap(false, true) {
		go func() {
			q.called.Store(false)
			if q.nested.Load() {
				q.tell()
			}
			q.steps(nil, forEver)
		}()
	}
}

type rate struct {
	by               limit.Limit
	permitsPerSecond float64
}

// rateOf returns permits per second; 0: unknown or no limit. It calls no function of the user's.
func (q *Queue) rateOf(l *Limit) float64 {
	if l.local() != nil {
		return limit.Finite(l.By)
	}
	for i := range q.rates {
		if q.rates[i].by == l.By {
			return q.rates[i].permitsPerSecond
		}
	}
	return 0
}

// learn keeps the rate that a limit says now.
func (q *Queue) learn(by limit.Limit) {
	if !reflect.ValueOf(by).Comparable() {
		return
	}
	says := limit.Finite(by)
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.rates, func(r rate) bool { return r.by == by })
	if i < 0 {
		i, q.rates = len(q.rates), append(q.rates, rate{by: by})
	}
	q.rates[i].permitsPerSecond = says
}

func (q *Queue) watcherOf(option int) *engine.Watcher {
	if option < len(q.options) {
		return q.options[option].watcher
	}
	return q.watcher
}
