package keyed

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/nextfree/pace/reserve"
)

// An ask is a call of the policy function for one key. A caller that wants the same key
// meanwhile waits for it, so that a slow function is not called by all of them at once. It
// stays with its shard until the key has an entry.
type ask[K comparable] struct {
	key    K
	done   chan struct{} // closed when the answer is there; nil until somebody waits
	policy *reserve.Policy
	err    error
	asking *atomic.Int64 // how many there are
}

// errPanicked is for those who waited for a policy function that did not return.
var errPanicked = errors.New("keyed: the policy function panicked")

// ask asks for the policy of a key that is not in the shard's table. The shard must be
// locked, and then is not. If there is a policy, the shard must be told when the key
// has an entry, or gets none: forget or answered.
func (k *Limiters[K]) ask(ctx context.Context, s *shard[K], key K) (*ask[K], error) {
	for _, a := range s.asks {
		if a.key == key {
			if a.done == nil {
				a.done = make(chan struct{})
			}
			s.mu.Unlock()
			return a, a.wait(ctx)
		}
	}
	a := &ask[K]{key: key, err: errPanicked, asking: &k.asking}
	k.asking.Add(1)
	s.asks = append(s.asks, a)
	s.mu.Unlock()
	defer func() {
		if a.err != nil {
			s.answered(a)
		}
	}()
	policy, err := k.policy(key)
	if policy == nil && err == nil {
		err = &reserve.ValueError{Package: "keyed", Name: "policy", Value: policy, Want: "a policy or an error"}
	}
	a.policy, a.err = policy, err
	return a, err
}

// asked reports whether the policy of a key is being asked for. The shard must be locked.
func (s *shard[K]) asked(key K) bool {
	return slices.ContainsFunc(s.asks, func(a *ask[K]) bool { return a.key == key })
}

// wait waits for the answer.
func (a *ask[K]) wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// forget forgets an ask, and lets those who wait for it go on. The shard must be locked.
func (s *shard[K]) forget(a *ask[K]) {
	i := slices.Index(s.asks, a)
	if i < 0 {
		return // done before
	}
	s.asks = slices.Delete(s.asks, i, i+1)
	a.asking.Add(-1)
	if a.done != nil {
		close(a.done)
	}
}

// answered is forget for a shard that is not locked.
func (s *shard[K]) answered(a *ask[K]) {
	s.mu.Lock()
	s.forget(a)
	s.mu.Unlock()
}
