package bykey

import (
	"github.com/nextfree/pace/internal/engine"
)

// Each call looks at two entries on average, and drops the untouched: in a flood of keys that come once each, at most a
// quarter of the table waits to be dropped. Thirty-two in a row at every sixteenth call are cheaper: they lie next to
// each other, and the clock is read once.
const (
	sweepEvery = 16 // calls
	sweepSize  = 32 // entries, if there are so many
	// A few keys in many shards are seldom swept, but they are few.
	sweepShards = 4
)

// searchSize is how many entries are looked at before a new key is refused, in about a microsecond. If a tenth of all
// is idle, that finds an idle entry with 99.9 %.
const searchSize = 64

// unlock unlocks the shard. Each sixteenth call sweeps some shards in turn.
func (k *Limiters[K]) unlock(s *shard[K]) {
	s.calls++
	due := s.calls%sweepEvery == 0
	s.mu.Unlock()
	if due {
		k.sweepSome()
	}
}

func (k *Limiters[K]) sweepSome() {
	for looks, shards := sweepSize, sweepShards; looks > 0 && shards > 0; shards-- {
		if s := k.nextShard(); s.mu.TryLock() { // no caller waits for a sweep
			looked, _ := k.sweep(s, looks, false)
			s.mu.Unlock()
			looks -= looked
		}
	}
}

func (k *Limiters[K]) nextShard() *shard[K] {
	return &k.shards[k.turn.Add(1)&uint32(len(k.shards)-1)]
}

// sweep drops the untouched among the next n entries of a locked shard. While its policy's time to live lasts, an entry
// is dropped only if its room is needed.
func (k *Limiters[K]) sweep(s *shard[K], n int, needed bool) (looked, dropped int) {
	n = min(n, len(s.entries))
	var policy *engine.Policy
	var untouched fresh
	for ; looked < n; looked++ {
		if s.swept >= len(s.entries) {
			s.swept = 0
		}
		e := &s.entries[s.swept]
		if e.policy != policy {
			policy = e.policy
			untouched = k.untouched(policy)
		}
		stale := k.stale(e)
		if k.perTick > 0 && !stale && !needed || !k.retire(s, untouched, e) {
			if stale {
				k.markStale(e)
			}
			s.swept++
			continue
		}
		k.drop(s, s.swept)
		dropped++
	}
	return looked, dropped
}

// retire reports whether an entry is untouched, so that it can be dropped, and ends its whole limiter, to which
// reservations may still refer.
func (k *Limiters[K]) retire(s *shard[K], untouched fresh, e *entry[K]) bool {
	if e.whole == nil {
		l, _ := e.ledger()
		return l.Idle(untouched.now) && l.Stored(untouched.now) == untouched.stored
	}
	hash, key, policy := e.hash, e.key, e.policy
	return e.whole.Retire(untouched.now, func(of engine.Ledger, now int64) func(permits int) {
		// Idle first: Stored may be slow with a long queue.
		if !of.Idle(now) || of.Rate() != untouched.rate || of.Stored(now) != untouched.stored {
			return nil
		}
		return func(permits int) { k.charge(s, hash, key, policy, permits) }
	})
}

// claim takes room for a new key before its policy is asked for, so that a flood stays cheap.
func (k *Limiters[K]) claim() bool {
	for {
		keys := k.keys.Load()
		if keys >= k.maxKeys {
			return false
		}
		if k.keys.CompareAndSwap(keys, keys+1) {
			return true
		}
	}
}

func (k *Limiters[K]) makeRoom() bool {
	looks := searchSize
	for range k.shards {
		s := k.nextShard()
		s.mu.Lock()
		looked, dropped := k.sweep(s, looks, true)
		s.mu.Unlock()
		looks -= looked
		if dropped > 0 {
			return true
		}
		if looks == 0 {
			break
		}
	}
	return false
}
