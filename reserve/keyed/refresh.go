package keyed

import (
	"context"
	"iter"
	"math"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// Refresh asks the policy function for the key's policy again, and puts it in place at once. It is for a tenant that
// has changed its plan. It is [reserve.Limiter.SetPolicy] of the key's limiter: what the key owes and what was promised
// stays, and stored permits scale with the store. A key with 1/s and a store of 10 that has 5 left, refreshed to 100/s
// and a store of 1000, has 500.
//
// A policy of another kind (a window in place of a bursty limiter) takes over when the last promised time has come. It
// has the same share of its store left. A key that is new has as much as its policy says, so Refresh of a key that
// isn't remembered does nothing, and asks nothing.
//
// It returns the policy function's error. The key keeps its policy then. If the error is [ErrUnknown], the key is
// forgotten.
func (k *Limiters[K]) Refresh(key K) error {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	s.round++
	if a := s.asked(key); a != nil {
		a.again = true
		err := s.wait(context.Background(), a)
		s.mu.Unlock()
		return err
	}
	if s.find(hash, key) == nil {
		s.mu.Unlock()
		return nil
	}
	a, _ := k.ask(s, key)
	if e := s.find(hash, key); e != nil && a.err == nil {
		k.finish(s, a, e, func(e *entry[K]) { k.adopt(s, e, a.policy) })
		return nil
	}
	if a.gone {
		k.revoke(s, hash, key)
	}
	s.forget(a)
	s.mu.Unlock()
	return a.err
}

// Forget drops the state of the key. Its next request finds it as if nothing had been asked since [New], with the
// policy that the function then returns. So what the key owes is forgiven. Requests of it that wait keep their times.
func (k *Limiters[K]) Forget(key K) {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	if a := s.asked(key); a != nil {
		a.again = true
	}
	k.revoke(s, hash, key)
}

// revoke drops a key, whatever it owes. The shard must be locked.
func (k *Limiters[K]) revoke(s *shard[K], hash uint32, key K) {
	if at := s.at(hash, key); at >= 0 {
		s.share(&s.entries[at]) // a hold of it ends apart from it
		k.drop(s, at)
	}
}

// Keys returns the keys that are remembered, in no order. A key that is remembered from the loop's beginning to its end
// comes once. One that is new or dropped meanwhile may come or not. The loop's body may use the limiters, and drop
// keys:
//
//	for tenant := range perTenant.Keys() {
//		if err := perTenant.Refresh(tenant); err != nil {
//			...
//		}
//	}
//
// It copies the keys of one shard at a time, of 4096 keys or fewer on average.
func (k *Limiters[K]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for i := range k.shards {
			for _, key := range k.shards[i].keys() {
				if !yield(key) {
					return
				}
			}
		}
	}
}

// keys returns the keys in the shard.
func (s *shard[K]) keys() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]K, len(s.entries))
	for i := range s.entries {
		keys[i] = s.entries[i].key
	}
	return keys
}

// adopt puts a policy in place of an entry's.
func (k *Limiters[K]) adopt(s *shard[K], e *entry[K], policy *reserve.Policy) {
	e.asked = k.tick(policy)
	if policy == e.policy {
		return
	}
	s.share(e)
	l := e.promote()
	if l.SetPolicy(policy) != nil { // of another kind
		e.limiter = k.carry(l, policy)
		hash, key := e.hash, e.key
		(*engine.Limiter)(l).Supersede(func(permits int) { k.charge(s, hash, key, policy, permits) })
	}
	e.policy = policy
}

// carry returns a limiter of a policy that takes over from a limiter of another kind. It grants nothing before all that
// was promised is due. It has the same share of its store left.
func (k *Limiters[K]) carry(from *reserve.Limiter, policy *reserve.Policy) *reserve.Limiter {
	f := k.untouched(policy)
	to := (*reserve.Limiter)((*engine.Policy)(policy).New(f.begin))
	before, now := (*engine.Limiter)(from).Outlook(), (*engine.Limiter)(to).Outlook()
	if n := math.Floor(now.Stored * (1 - left(before))); n >= 1 {
		(*engine.Limiter)(to).Charge(int(min(n, math.MaxInt32)))
	}
	if before.Wait > 0 {
		(*engine.Limiter)(to).Stop(from.NextFree())
	}
	return to
}

// left returns which part of its store a limiter has left: all, where it has none and owes nothing.
func left(o engine.Outlook) float64 {
	if o.Capacity > 0 && !math.IsInf(o.Capacity, 1) {
		return o.Stored / o.Capacity
	}
	if o.Wait > 0 {
		return 0
	}
	return 1
}

// ticks is how many parts a time to live has. An entry notes in 16 bits when its policy was asked for. These bits begin
// again after 2048 times to live. So an entry that no call has asked for or swept for so long may count as fresh.
const ticks = 32

// tick returns the present tick, on the policy's clock.
func (k *Limiters[K]) tick(p *reserve.Policy) uint16 {
	if k.perTick == 0 {
		return 0
	}
	t := (*engine.Policy)(p).Terms()
	return uint16((t.Now() - t.Since(k.since(t))) / k.perTick)
}

// stale reports whether the time to live of an entry's policy is over.
func (k *Limiters[K]) stale(e *entry[K]) bool {
	return k.perTick > 0 && k.tick(e.policy)-e.asked >= ticks
}

// postpone lets an entry keep its policy for another eighth of its time to live.
func (k *Limiters[K]) postpone(e *entry[K]) { e.asked = k.tick(e.policy) - (ticks - ticks/8) }

// markStale keeps a stale entry stale, whatever time passes.
func (k *Limiters[K]) markStale(e *entry[K]) { e.asked = k.tick(e.policy) - ticks }
