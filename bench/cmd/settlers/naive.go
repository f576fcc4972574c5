package main

import (
	"math"
	"time"
)

// naive is what is possible: a bucket that rises at the rate up to its store, and falls, when a
// call goes, by what is known now of what it came to. It is recomputed for every
// question. First come, first served; the head goes as soon as the bucket is not in debt.
type naive struct {
	settled bucket // after the first calls, of which all is known
	gone    []*naivePromise
	waiting []*naivePromise
}

func newNaive(l load) limiter { return &naive{settled: bucket{store: l.store()}} }

// A bucket has a level at a time.
type bucket struct {
	store, level float64
	at           time.Duration
}

// rise lets the time pass until then.
func (b *bucket) rise(to time.Duration) {
	b.level = min(b.store, b.level+permitsPerSecond*(to-b.at).Seconds())
	b.at = to
}

// take lets a call go.
func (b *bucket) take(p *naivePromise) {
	b.rise(p.ready)
	b.level -= float64(p.amount)
}

// free returns when the bucket is not in debt any more.
func (n *naive) free(now time.Duration) time.Duration {
	for len(n.gone) > 0 && n.gone[0].settled {
		n.settled.take(n.gone[0])
		n.gone = n.gone[1:]
	}
	b := n.settled
	for _, p := range n.gone {
		b.take(p)
	}
	b.rise(now)
	const rounding = 1e-3 // ns
	return now + time.Duration(math.Ceil(max(0, -b.level/permitsPerSecond*1e9-rounding)))
}

// advance lets all go whose time has come.
func (n *naive) advance(now time.Duration) {
	for len(n.waiting) > 0 && n.free(now) <= now {
		n.waiting[0].ready = now
		n.gone, n.waiting = append(n.gone, n.waiting[0]), n.waiting[1:]
	}
}

func (n *naive) reserve(now time.Duration, permits int) promise {
	n.advance(now)
	p := &naivePromise{by: n, amount: permits, ready: never}
	n.waiting = append(n.waiting, p)
	return p
}

type naivePromise struct {
	by      *naive
	amount  int
	settled bool
	ready   time.Duration // never, as long as it waits
}

// at returns never for those behind the head: none of them is the next to go.
func (p *naivePromise) at(now time.Duration) time.Duration {
	p.by.advance(now)
	if p.ready == never && p == p.by.waiting[0] {
		return p.by.free(now)
	}
	return p.ready
}

func (p *naivePromise) settle(now time.Duration, actual int) {
	p.by.advance(now)
	p.amount, p.settled = actual, true
}

const never = time.Duration(math.MaxInt64)
