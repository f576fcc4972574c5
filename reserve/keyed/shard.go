package keyed

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/hooks"
)

// A shard is a part of the keys, behind a lock.
//
// Locks are taken in this order: of a limiter that has been retired, of a shard, of a
// limiter in its table; and never two of a kind.
type shard[K comparable] struct {
	mu sync.Mutex
	table[K]
	swept int       // the position in the table where the next sweep begins
	calls uint32    // so far
	asks  []*ask[K] // for policies, under way

	holds    []held[K] // that are not over
	lastHold uint64
}

// place returns the number of the key's shard and its hash within that.
func (k *Limiters[K]) place(key K) (shard, hash uint32) {
	h := maphash.Comparable(k.seed, key)
	return uint32(h>>32) & uint32(len(k.shards)-1), uint32(h)
}

// shardOf returns the key's shard and its hash within that.
func (k *Limiters[K]) shardOf(key K) (*shard[K], uint32) {
	number, hash := k.place(key)
	return &k.shards[number], hash
}

// with calls do with the key's entry, locked.
func (k *Limiters[K]) with(ctx context.Context, key K, do func(*entry[K])) error {
	s, hash := k.shardOf(key)
	return k.in(ctx, s, hash, key, do)
}

// in is with for a key whose shard is known.
func (k *Limiters[K]) in(ctx context.Context, s *shard[K], hash uint32, key K, do func(*entry[K])) error {
	s.mu.Lock()
	e := s.find(hash, key)
	if e == nil && k.guard != nil && !s.asked(key) {
		s.mu.Unlock()
		if !k.admits(key) {
			return ErrTooManyKeys
		}
		s.mu.Lock()
		e = s.find(hash, key)
	}
	if e == nil && k.full() && !s.asked(key) { // before the policy is asked for: a flood stays cheap
		s.mu.Unlock()
		if !k.makeRoom() {
			return ErrTooManyKeys
		}
		s.mu.Lock()
		e = s.find(hash, key)
	}
	if e == nil {
		return k.withNew(ctx, s, hash, key, do)
	}
	defer k.unlock(s) // even if do panics: contexts, clocks and curves are the caller's
	s.share(e)
	do(e)
	return nil
}

// withNew is with for a key of which nothing is remembered, in a shard that is locked. The
// entry is kept only if do leaves in it what is no longer like new: so who is refused costs no memory.
func (k *Limiters[K]) withNew(ctx context.Context, s *shard[K], hash uint32, key K, do func(*entry[K])) error {
	a, err := k.ask(ctx, s, key)
	if err != nil {
		return err
	}
	for {
		s.mu.Lock()
		if e := s.find(hash, key); e != nil { // somebody else was quicker
			k.finish(s, a, e, do)
			return nil
		}
		if k.claim() {
			k.finish(s, a, k.insert(s, hash, key, a.policy), func(e *entry[K]) {
				defer func() {
					if f := k.fresh(a.policy); !e.held && f.is(e.limiter, &e.small) && k.retire(s, &f, e) {
						k.drop(s, len(s.entries)-1)
					}
				}()
				do(e)
			})
			return nil
		}
		s.mu.Unlock()
		if !k.makeRoom() {
			s.answered(a)
			return ErrTooManyKeys
		}
	}
}

// finish calls do, and leaves nothing locked or waiting even if that panics.
func (k *Limiters[K]) finish(s *shard[K], a *ask[K], e *entry[K], do func(*entry[K])) {
	defer k.unlock(s)
	defer s.forget(a)
	s.share(e)
	do(e)
}

// insert adds the entry of a key that is not in the table.
func (k *Limiters[K]) insert(s *shard[K], hash uint32, key K, policy *reserve.Policy) *entry[K] {
	e := entry[K]{key: key, hash: hash, policy: policy}
	f := k.fresh(policy)
	var ok bool
	if e.small, ok = f.small(); !ok {
		e.limiter = engine.New(policy, f.begin)
	}
	k.counted(key, 1)
	return s.table.insert(e)
}

// drop drops the entry at that position.
func (k *Limiters[K]) drop(s *shard[K], position int) {
	key := s.entries[position].key
	s.remove(position)
	k.keys.Add(-1)
	k.counted(key, -1)
}

// look calls do with the key's limiter, or with what that would be: do must change nothing.
func (k *Limiters[K]) look(key K, do func(*reserve.Limiter)) {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	if e := s.find(hash, key); e != nil {
		defer s.mu.Unlock()
		if e.limiter != nil {
			do(e.limiter)
			return
		}
		do(e.small.grown(e.policy)) // a copy
		return
	}
	a, err := k.ask(context.Background(), s, key)
	if err != nil {
		return
	}
	s.answered(a)
	f := k.fresh(a.policy)
	do(engine.New(a.policy, f.begin))
}

// charge takes permits of a key that have been used already: what a reservation
// settles at after its limiter was retired. It also finds room where there is none.
func (k *Limiters[K]) charge(s *shard[K], hash uint32, key K, policy *reserve.Policy, permits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(hash, key)
	if e == nil {
		k.keys.Add(1)
		e = k.insert(s, hash, key, policy)
	}
	s.share(e)
	if e.limiter != nil {
		engine.Charge(e.limiter, permits)
	} else {
		e.small.charge(e.policy, permits)
	}
}

// since returns when the limiters of policies with those terms begin.
func (k *Limiters[K]) since(t *hooks.Terms) time.Time {
	if t.Fake == nil {
		return k.begin
	}
	if begin := k.ownBegin.Load(); begin != nil {
		return *begin
	}
	first := t.Epoch
	k.ownBegin.CompareAndSwap(nil, &first)
	return *k.ownBegin.Load()
}
