package keyed

import "github.com/nextfree/pace/reserve"

// Each call looks at two entries on average, and drops those that are like new. A
// sweep through n entries takes n/2 calls then; so of a flood of keys that come once
// each, no more than a quarter of the table is waiting to be dropped: n/2 come
// during a sweep, and wait for half of it on average. With one look it would be half of
// the table; with more, calls get slower. Thirty-two in a row at every sixteenth call are
// cheaper than two each time: they lie next to each other, and the clock is read once.
const (
	sweepEvery = 16 // calls
	sweepSize  = 32 // entries, if there are so many
	// in so many shards: a few keys in many shards are seldom swept, but they are few.
	sweepShards = 4
)

// roomSize is how many entries are looked at, where there are as many, before a new
// key is refused: if a tenth of them is idle one is found with a chance of 99.9 %,
// and if none is, it takes about a microsecond.
const roomSize = 64

// unlock unlocks the shard after a call, and now and then sweeps: others, whose turn
// it is, so that those which are hardly called are swept too.
func (k *Limiters[K]) unlock(s *shard[K]) {
	s.calls++
	due := s.calls%sweepEvery == 0
	s.mu.Unlock()
	if due {
		k.sweepSome()
	}
}

// sweepSome looks at sweepSize entries, of the shards whose turn it is and that nobody uses now.
func (k *Limiters[K]) sweepSome() {
	for looks, shards := sweepSize, sweepShards; looks > 0 && shards > 0; shards-- {
		if s := k.nextShard(); s.mu.TryLock() { // nobody waits for it
			looked, _ := k.sweep(s, looks, false)
			s.mu.Unlock()
			looks -= looked
		}
	}
}

// nextShard returns the shard whose turn it is to be swept.
func (k *Limiters[K]) nextShard() *shard[K] {
	return &k.shards[k.turn.Add(1)&uint32(len(k.shards)-1)]
}

// sweep looks at up to n entries of a shard that is locked, from where it stopped
// the last time, and drops those that are like new: if room is needed, also those whose policy's time
// to live is not over.
func (k *Limiters[K]) sweep(s *shard[K], n int, needed bool) (looked, dropped int) {
	n = min(n, len(s.entries))
	var policy *reserve.Policy
	var f untouched
	for ; looked < n; looked++ {
		if s.swept >= len(s.entries) {
			s.swept = 0
		}
		e := &s.entries[s.swept]
		if e.policy != policy {
			policy = e.policy
			f = k.untouched(policy)
		}
		stale := k.stale(e)
		if e.held || k.perTick > 0 && !stale && !needed || !f.is(e.limiter, &e.compact) || !k.retire(s, &f, e) {
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

// retire makes an end of an entry's limiter, if it is a whole one: reservations may
// still hold it. It reports whether nothing has happened to it since it was looked at.
func (k *Limiters[K]) retire(s *shard[K], f *untouched, e *entry[K]) bool {
	if e.limiter == nil {
		return true
	}
	hash, key, policy := e.hash, e.key, e.policy
	return engine.Retire(e.limiter, f.Fresh, func(permits int) { k.charge(s, hash, key, policy, permits) })
}

// full reports whether there is no room for a new key.
//
// A key whose policy is being asked for counts, so that a flood of new ones is bounded
// while a slow policy function works on the first.
func (k *Limiters[K]) full() bool { return k.keys.Load()+k.asking.Load() >= k.maxKeys }

// claim takes the room for a new key, if there is any.
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

// makeRoom looks for entries to drop, and reports whether it has found any.
func (k *Limiters[K]) makeRoom() bool {
	looks := roomSize
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
