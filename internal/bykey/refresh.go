package bykey

import (
	"context"
	"math"

	"github.com/nextfree/pace/internal/engine"
)

func (k *Limiters[K]) Refresh(key K) error {
	s, hash := k.shardOf(key)
	s.mu.Lock()
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
	return k.answer(s, hash, key, nil)
}

func (k *Limiters[K]) Forget(key K) {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.asked(key); a != nil {
		a.again = true
	}
	k.revoke(s, hash, key)
}

func (k *Limiters[K]) adopt(s *shard[K], e *entry[K], policy *engine.Policy) {
	e.asked = k.tick(policy)
	if policy == e.policy {
		return
	}
	l := e.limiter()
	if l.SetPolicy(policy) != "" { // of another kind
		e.whole = k.carry(l, policy)
		hash, key := e.hash, e.key
		l.Retire(0, func(engine.Ledger, int64) func(permits int) {
			return func(permits int) { k.charge(s, hash, key, policy, permits) }
		})
	}
	e.policy = policy
}

// carry returns a successor of another kind: with the same share of its store left (all if there is no store and
// nothing is owed), and no grant before all requests that wait have theirs.
func (k *Limiters[K]) carry(from *engine.Limiter, policy *engine.Policy) *engine.Limiter {
	to := policy.New(k.beginOf(policy.Terms()))
	before, now, left := from.Outlook(), to.Outlook(), 1.0
	if before.Capacity > 0 && !math.IsInf(before.Capacity, 1) {
		left = before.Stored / before.Capacity
	} else if before.Wait > 0 {
		left = 0
	}
	if n := math.Floor(now.Stored * (1 - left)); n >= 1 {
		to.Charge(int(min(n, math.MaxInt32)))
	}
	if last, waits := from.Promised(); waits {
		to.Stop(last)
	}
	return to
}

// ticks is how many parts a time to live has. An entry's tick has 16 bits, which begin again after 2048 times to live.
const ticks = 32

func (k *Limiters[K]) tick(p *engine.Policy) uint16 {
	if k.perTick == 0 {
		return 0
	}
	t := p.Terms()
	return uint16((t.Now() - t.Since(k.since(t))) / k.perTick)
}

func (k *Limiters[K]) stale(e *entry[K]) bool {
	return k.perTick > 0 && k.tick(e.policy)-e.asked >= ticks
}

// postpone keeps the policy for another eighth of its time to live.
func (k *Limiters[K]) postpone(e *entry[K]) { e.asked = k.tick(e.policy) - (ticks - ticks/8) }

func (k *Limiters[K]) markStale(e *entry[K]) { e.asked = k.tick(e.policy) - ticks }
