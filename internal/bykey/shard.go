package bykey

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/nextfree/pace/internal/engine"
)

// A shard is a part of the keys, behind a lock. Locks are taken in this order: of a retired limiter, of a shard, of a
// limiter in its table. Never two of a kind.
type shard[K comparable] struct {
	mu sync.Mutex
	table[K]
	swept int       // the position in the table where the next sweep begins
	calls uint32    // so far
	asks  []*ask[K] // for policies, under way
}

// An ask is a call of the policy function for a key, for which other callers for a new key wait. It stays with its
// shard until the key has an entry with the answer.
type ask[K comparable] struct {
	key   K
	done  chan struct{} // closed when the answer is there; nil until a caller waits for it
	err   error         // of the function, of a new key
	again bool          // Refresh or Forget came after the call began: the answer may be of before
}

var errPanicked = errors.New("keyed: the policy function panicked")

func (k *Limiters[K]) shardOf(key K) (s *shard[K], hash uint32) {
	h := maphash.Comparable(k.seed, key)
	return &k.shards[uint32(h>>32)&uint32(len(k.shards)-1)], uint32(h)
}

// with calls do, under the shard's lock, with the key's entry, which it makes if there is none. It returns do's error,
// or the reason why there is no entry.
func (k *Limiters[K]) with(ctx context.Context, key K, do func(*entry[K]) error) error {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	for {
		e, a := s.find(hash, key), s.asked(key)
		switch {
		case e != nil && (a != nil || !k.stale(e)):
			return k.call(s, e, do)
		case e != nil:
			return k.answer(s, hash, key, do)
		case a != nil:
			if err := s.wait(ctx, a); err != nil {
				s.mu.Unlock()
				return err
			}
		case k.guard != nil && !k.guard.Admits(key, k.Len()):
			s.mu.Unlock()
			if k.refused.Add(1)%sweepEvery == 0 { // refused calls sweep, too: there may be no others
				k.sweepSome()
			}
			return ErrTooManyKeys
		case k.claim():
			return k.answer(s, hash, key, do)
		default:
			s.mu.Unlock()
			if !k.makeRoom() {
				return ErrTooManyKeys
			}
			s.mu.Lock()
		}
	}
}

func (k *Limiters[K]) call(s *shard[K], e *entry[K], do func(*entry[K]) error) error {
	defer k.unlock(s) // even if do panics: contexts, clocks and curves are the caller's
	return do(e)
}

// answer calls do (may be nil) with the entry of a key whose policy has to be asked for: a new key, for which there is
// room, or a remembered one. The shard must be locked. After an error a remembered key keeps its policy for a while.
func (k *Limiters[K]) answer(s *shard[K], hash uint32, key K, do func(*entry[K]) error) (err error) {
	defer k.unlock(s)
	claimed := s.find(hash, key) == nil
	defer func() {
		if claimed {
			k.keys.Add(-1)
		}
	}()
	policy, a := k.always, (*ask[K])(nil)
	if policy == nil {
		a = &ask[K]{key: key, err: errPanicked}
		s.asks = append(s.asks, a)
		defer s.end(a)
		policy, err = k.ask(s, hash, a)
		a.err = err
	}
	e := s.find(hash, key)
	switch {
	case e != nil && err == nil:
		k.adopt(s, e, policy)
	case e != nil:
		k.postpone(e)
		a.err = nil
	case err == nil && do != nil:
		if !claimed && !k.claim() { // it was dropped meanwhile
			return ErrTooManyKeys
		}
		claimed = false
		return k.try(s, k.insert(s, hash, key, policy), a, do)
	}
	if e == nil || do == nil {
		return err
	}
	return do(e)
}

// ask asks for a key's policy without a lock, and again if it was refreshed or forgotten meanwhile. It forgets an
// unknown key.
func (k *Limiters[K]) ask(s *shard[K], hash uint32, a *ask[K]) (policy *engine.Policy, err error) {
	unknown := false
	for again := true; again; again = a.again {
		a.again = false
		func() {
			s.mu.Unlock()
			defer s.mu.Lock() // even if the function panics
			of, failed := k.policy(a.key)
			if of == nil && failed == nil {
				failed = valueError("policy", of, "a policy or an error")
			}
			policy, err = (*engine.Policy)(of), failed
			unknown = errors.Is(err, ErrUnknown) // a method of the error may be the user's
		}()
	}
	if unknown {
		k.revoke(s, hash, a.key)
	}
	return policy, err
}

func (s *shard[K]) asked(key K) *ask[K] {
	for _, a := range s.asks {
		if a.key == key {
			return a
		}
	}
	return nil
}

// wait returns the error of another caller's ask, or the context's cause. The shard must be locked, and is again.
func (s *shard[K]) wait(ctx context.Context, a *ask[K]) error {
	if a.done == nil {
		a.done = make(chan struct{})
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *shard[K]) end(a *ask[K]) {
	i := slices.Index(s.asks, a)
	s.asks = slices.Delete(s.asks, i, i+1)
	if a.done != nil {
		close(a.done)
	}
}

// try calls do with the shard's last, new entry, and drops it if that changed nothing: a refused call costs no memory.
// With a time to live the answer is kept, and where callers wait for it.
func (k *Limiters[K]) try(s *shard[K], e *entry[K], a *ask[K], do func(*entry[K]) error) error {
	before := e.compact
	defer func() {
		if k.perTick > 0 || a != nil && a.done != nil {
			return
		}
		if e.whole == nil && e.compact != before && !math.IsInf(e.policy.Terms().Curve.Rate, 1) {
			return // it has granted something: no need to read the clock again
		}
		if k.retire(s, k.untouched(e.policy), e) {
			k.drop(s, len(s.entries)-1)
		}
	}()
	return do(e)
}

func (k *Limiters[K]) insert(s *shard[K], hash uint32, key K, policy *engine.Policy) *entry[K] {
	e := entry[K]{key: key, hash: hash, state: newState(policy, k.beginOf(policy.Terms())), asked: k.tick(policy)}
	if k.guard != nil {
		k.guard.Count(key, 1)
	}
	return s.table.insert(e)
}

func (k *Limiters[K]) drop(s *shard[K], position int) {
	key := s.entries[position].key
	s.remove(position)
	k.keys.Add(-1)
	if k.guard != nil {
		k.guard.Count(key, -1)
	}
}

func (k *Limiters[K]) revoke(s *shard[K], hash uint32, key K) {
	if at := s.at(hash, key); at >= 0 {
		k.drop(s, at)
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

func (s *shard[K]) keys() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]K, len(s.entries))
	for i := range s.entries {
		keys[i] = s.entries[i].key
	}
	return keys
}
