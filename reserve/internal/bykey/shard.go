package bykey

import (
	"context"
	"hash/maphash"
	"math"
	"sync"

	"github.com/nextfree/pace/reserve/internal/engine"
)

// A shard is a part of the keys, behind a lock.
//
// Locks are taken in this order: of a retired limiter, of a shard, of a limiter in its table. Never two of a kind.
type shard[K comparable] struct {
	mu sync.Mutex
	table[K]
	swept int       // the position in the table where the next sweep begins
	calls uint32    // so far
	asks  []*ask[K] // for policies, under way
	round uint32    // how often Refresh and Forget were called
}

// place returns the number of the key's shard, and its hash there.
func (k *Limiters[K]) place(key K) (shard, hash uint32) {
	h := maphash.Comparable(k.seed, key)
	return uint32(h>>32) & uint32(len(k.shards)-1), uint32(h)
}

func (k *Limiters[K]) shardOf(key K) (*shard[K], uint32) {
	number, hash := k.place(key)
	return &k.shards[number], hash
}

func (k *Limiters[K]) with(ctx context.Context, key K, do func(*entry[K])) error {
	s, hash := k.shardOf(key)
	return k.in(ctx, s, hash, key, do)
}

// in is with for a known shard.
func (k *Limiters[K]) in(ctx context.Context, s *shard[K], hash uint32, key K, do func(*entry[K])) error {
	s.mu.Lock()
	e := s.find(hash, key)
	if e == nil && k.guard != nil && s.asked(key) == nil {
		s.mu.Unlock()
		if !k.admits(key) {
			return ErrTooManyKeys
		}
		s.mu.Lock()
		e = s.find(hash, key)
	}
	if e == nil && k.full() && s.asked(key) == nil { // before the policy is asked for: a flood stays cheap
		s.mu.Unlock()
		if !k.makeRoom() {
			return ErrTooManyKeys
		}
		s.mu.Lock()
		e = s.find(hash, key)
	}
	if e == nil && k.always != nil {
		return k.withNew(s, hash, key, do)
	}
	if e == nil || k.stale(e) && s.asked(key) == nil {
		return k.withAnswer(ctx, s, hash, key, do)
	}
	defer k.unlock(s) // even if do panics: contexts, clocks and curves are the caller's
	do(e)
	return nil
}

// withNew is with for a new key where all have the same policy. The shard must be locked.
func (k *Limiters[K]) withNew(s *shard[K], hash uint32, key K, do func(*entry[K])) error {
	for !k.claim() {
		s.mu.Unlock()
		if !k.makeRoom() {
			return ErrTooManyKeys
		}
		s.mu.Lock()
	}
	e := s.find(hash, key)
	if e != nil { // another caller was quicker
		k.keys.Add(-1)
		defer k.unlock(s)
		do(e)
		return nil
	}
	e = k.insert(s, hash, key, k.always)
	defer k.unlock(s)
	k.try(s, e, do)
	return nil
}

// withAnswer is with for a key that is new or stale. The shard must be locked.
func (k *Limiters[K]) withAnswer(ctx context.Context, s *shard[K], hash uint32, key K, do func(*entry[K])) error {
	a, own := k.ask(s, key)
	if !own {
		if err := s.wait(ctx, a); err != nil {
			s.mu.Unlock()
			return err
		}
		if a.round != s.round { // the key may have been refreshed since the answer came
			s.mu.Unlock()
			return k.in(ctx, s, hash, key, do)
		}
	}
	return k.answered(s, hash, key, a, own, do)
}

// answered is withAnswer with an answer, its own or another caller's.
func (k *Limiters[K]) answered(s *shard[K], hash uint32, key K, a *ask[K], own bool, do func(*entry[K])) error {
	for {
		if own && a.gone {
			k.revoke(s, hash, key)
		} else if e := s.find(hash, key); e != nil {
			k.withOld(s, a, own, e, do)
			return nil
		}
		if a.err != nil {
			s.mu.Unlock()
			return a.err
		}
		if k.claim() {
			e := k.insert(s, hash, key, a.policy)
			k.finish(s, a, e, func(e *entry[K]) { k.try(s, e, do) })
			return nil
		}
		s.mu.Unlock()
		room := k.makeRoom()
		s.mu.Lock()
		if !room {
			s.forget(a)
			s.mu.Unlock()
			return ErrTooManyKeys
		}
		if own && a.again {
			k.answer(s, a)
		}
	}
}

func (k *Limiters[K]) try(s *shard[K], e *entry[K], do func(*entry[K])) {
	before := e.compact
	defer func() { k.dropUntouched(s, e, before) }()
	do(e)
}

// withOld is withAnswer for a remembered key. After an error the key keeps its policy for a while.
func (k *Limiters[K]) withOld(s *shard[K], a *ask[K], own bool, e *entry[K], do func(*entry[K])) {
	k.finish(s, a, e, func(e *entry[K]) {
		switch {
		case own && a.err == nil:
			k.adopt(s, e, a.policy)
		case own:
			k.postpone(e)
		}
		do(e)
	})
}

// dropUntouched drops the shard's last, new entry if its call changed nothing: a refused call costs no memory. With a
// time to live the answer is kept.
func (k *Limiters[K]) dropUntouched(s *shard[K], e *entry[K], before compact) {
	if k.perTick > 0 {
		return
	}
	if e.whole == nil && e.compact != before && !math.IsInf(e.policy.Terms().Curve.Rate, 1) {
		return // it has granted something: no need to read the clock again
	}
	if f := k.untouched(e.policy); f.is(&e.state) && k.retire(s, &f, e) {
		k.drop(s, len(s.entries)-1)
	}
}

// finish calls do, and leaves nothing locked or waiting even if do panics.
func (k *Limiters[K]) finish(s *shard[K], a *ask[K], e *entry[K], do func(*entry[K])) {
	defer k.unlock(s)
	defer s.forget(a)
	do(e)
}

func (k *Limiters[K]) insert(s *shard[K], hash uint32, key K, policy *engine.Policy) *entry[K] {
	e := entry[K]{key: key, hash: hash, state: newState(policy, k.beginOf(policy.Terms())), asked: k.tick(policy)}
	k.counted(key, 1)
	return s.table.insert(e)
}

func (k *Limiters[K]) drop(s *shard[K], position int) {
	key := s.entries[position].key
	s.remove(position)
	k.keys.Add(-1)
	k.counted(key, -1)
}

// look calls do, which must change nothing, with the limiter, or what it would be.
func (k *Limiters[K]) look(key K, do func(*engine.Limiter)) {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	if e := s.find(hash, key); e != nil {
		defer s.mu.Unlock()
		do(e.copied())
		return
	}
	a, own := k.ask(s, key)
	if !own {
		if err := s.wait(context.Background(), a); err != nil {
			s.mu.Unlock()
			return
		}
	}
	switch e := s.find(hash, key); { // added meanwhile, with an answer of before: Refresh waits for this one
	case e == nil || !own:
	case a.err == nil:
		k.finish(s, a, e, func(e *entry[K]) {
			k.adopt(s, e, a.policy)
			do(e.copied())
		})
		return
	case a.gone:
		k.revoke(s, hash, key)
	}
	s.forget(a)
	s.mu.Unlock()
	if a.err == nil {
		f := k.untouched(a.policy)
		do(a.policy.New(f.begin))
	}
}

// charge takes what a reservation of a retired limiter settles at. It needs no room.
func (k *Limiters[K]) charge(s *shard[K], hash uint32, key K, policy *engine.Policy, permits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(hash, key)
	if e == nil {
		k.keys.Add(1)
		e = k.insert(s, hash, key, policy)
	}
	e.charge(permits)
}
