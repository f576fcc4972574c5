package bykey

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/nextfree/pace/reserve/internal/engine"
)

// An ask is a call of the policy function for a key. Other callers for the key wait for it. It stays with its shard
// until the key has an entry with the answer.
type ask[K comparable] struct {
	key    K
	done   chan struct{} // closed when the answer is there; nil until a caller waits for it
	policy *engine.Policy
	err    error
	gone   bool          // the error is ErrUnknown
	asking *atomic.Int64 // how many asks there are

	again bool   // Refresh or Forget came after the call began: the answer may be of before
	round uint32 // of the shard, when the answer came
}

var errPanicked = errors.New("keyed: the policy function panicked")

// ask returns the answer of its own call or of one under way. The shard must be locked, and is again. After an own call
// that returned a policy, call finish or forget.
func (k *Limiters[K]) ask(s *shard[K], key K) (a *ask[K], own bool) {
	if a := s.asked(key); a != nil {
		return a, false
	}
	a = &ask[K]{key: key, asking: &k.asking}
	k.asking.Add(1)
	s.asks = append(s.asks, a)
	k.answer(s, a)
	return a, true
}

// answer asks without a lock, and again if the key was refreshed or forgotten meanwhile. The shard must be locked, and
// is again unless the function panics.
func (k *Limiters[K]) answer(s *shard[K], a *ask[K]) {
	for again := true; again; again = a.again {
		a.again = false
		s.mu.Unlock()
		a.policy, a.err, a.gone = k.call(s, a)
		s.mu.Lock()
	}
	a.round = s.round
	if a.err != nil {
		s.forget(a)
	}
}

// call ends the ask if the policy function panics.
func (k *Limiters[K]) call(s *shard[K], a *ask[K]) (policy *engine.Policy, err error, gone bool) {
	returned := false
	defer func() {
		if !returned {
			s.mu.Lock()
			a.err = errPanicked
			s.forget(a)
			s.mu.Unlock()
		}
	}()
	of, err := k.policy(a.key)
	if of == nil && err == nil {
		err = valueError("policy", of, "a policy or an error")
	}
	gone = errors.Is(err, ErrUnknown) // the error may be the user's, which is asked under no lock
	returned = true
	return (*engine.Policy)(of), err, gone
}

// asked returns the key's ask under way, or nil. The shard must be locked.
func (s *shard[K]) asked(key K) *ask[K] {
	for _, a := range s.asks {
		if a.key == key {
			return a
		}
	}
	return nil
}

// wait returns the error of another caller's ask, or the context's cause. The shard must be locked, and is again.
func (s *shard[K]) wait(ctx context.Context, a *ask[K]) (err error) {
	if a.done == nil {
		a.done = make(chan struct{})
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		err = a.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	return err
}

// forget ends an ask. The shard must be locked.
func (s *shard[K]) forget(a *ask[K]) {
	i := slices.Index(s.asks, a)
	if i < 0 {
		return // it has ended before
	}
	s.asks = slices.Delete(s.asks, i, i+1)
	a.asking.Add(-1)
	if a.done != nil {
		close(a.done)
	}
}
