package shared

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
)

// A Store keeps the states of limiters for several processes: it can replace a value atomically.
//
// Update replaces the value at key by the result of f, atomically, and keeps it for at least keep. If f returns an
// error, nothing is written, and Update returns (or wraps) it. Update returns when the context ends; if not, it is left
// to itself.
//
// f gets nil if there is no value, and the store's time, or the zero time if the store has no clock. Then the
// processes' clocks must differ by less than half a second. f has no effects, may be called more than once, and does
// not keep old. After Update has returned, it returns an error.
//
// A key is the prefix and the name: "pace:{api}". A value takes some 120 bytes, and 4 to 8 for each of the last 512
// requests since the limiter was full; a window's 2 to 12 for each request in it. Every waiting request is in it: with
// 10,000, each call reads and writes 60 kB, and takes 0.7 ms beside the store's time.
//
// An error that wraps [ErrNotWritten] says that nothing was written for sure: no permits count as charged. A
// *[ConfigError] reaches every caller.
//
// A Store whose calls make connections has a method Dials(): while it does not answer, their contexts last longer than
// their callers wait.
type Store interface {
	Update(ctx context.Context, key string,
		f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error)) error
}

// ErrNotWritten is wrapped by the errors of a [Store] that has written nothing for sure.
var ErrNotWritten = errors.New("shared: nothing was written")

// NewIn is [New] for a [Store]. The policy may also be a window's, a calendar's, or any that can be saved
// ([reserve.Limiter.AppendBinary]): 5,000 a day for all processes and runs of a program together.
//
// Under package outbound a window and a calendar count a permit until the answer is there. The end of a use is told by
// a call that nobody waits for, and so is, each 20 s, a use of over 250 ms. A killed process's uses end a minute after
// its last word. With [WithAhead], permits count by their grant.
func NewIn(store Store, name string, policy *reserve.Policy, opts ...Option) (*Limiter, error) {
	return newOne(ofStore(store), name, policy, opts)
}

// NewKeyedIn is [NewKeyed] for a [Store].
func NewKeyedIn(store Store, policy *reserve.Policy, opts ...Option) (*Keyed, error) {
	return newMany(ofStore(store), policy, opts)
}

func ofStore(store Store) opener {
	return func(s *settings) (*nodes, error) {
		if isnil.Value(store) {
			return nil, valueError("store", nil, "a store")
		}
		pkg, _, _ := strings.Cut(strings.TrimLeft(fmt.Sprintf("%T", store), "*"), ".")
		_, dials := store.(interface{ Dials() })
		k := &storeKeeper{store: store, clock: s.clock}
		return &nodes{single: s.newNode("package "+pkg+"'s store", k, dials)}, nil
	}
}

type storeKeeper struct {
	store Store
	clock func() int64 // the tests' clock, in microseconds; nil: the store's
}

var (
	errUnchanged = errors.New("shared: the state has not changed")
	journals     = sync.Pool{New: func() any { return new(journal) }}
)

func (k *storeKeeper) decide(ctx context.Context, key string, o *order) error {
	j := journals.Get().(*journal)
	defer journals.Put(j)
	var running sync.Mutex
	over := false // Update has returned, though what it called may go on
	err := k.store.Update(ctx, key, func(at time.Time, old []byte) ([]byte, time.Duration, error) {
		running.Lock()
		defer running.Unlock()
		if over {
			return nil, 0, errLate
		}
		o.answers, o.decided = o.answers[:0], k.now(at)
		if o.late = o.decided > o.notAfter; o.late {
			return nil, 0, errUnchanged
		}
		return j.update(o, old, o.decided)
	})
	running.Lock()
	defer running.Unlock()
	if over = true; errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

func (j *journal) update(o *order, old []byte, now int64) (value []byte, keep time.Duration, err error) {
	if err = j.decode(old, o.terms, now); err != nil && o.pause == reset {
		err = j.decode(nil, o.terms, now) // it was of another algorithm
	}
	if err != nil {
		return nil, 0, err
	}
	written, keep := j.decide(o, now)
	if !written {
		return nil, 0, errUnchanged
	}
	return j.encode(), keep, nil
}

func (k *storeKeeper) now(at time.Time) int64 {
	switch {
	case k.clock != nil:
		return k.clock() * 1000
	case at.IsZero():
		at = time.Now()
	}
	return at.UnixNano()
}

// Memory returns a store in memory, for tests, also in a testing/synctest bubble. It forgets nothing.
func Memory() Store { return &memory{values: map[string][]byte{}} }

type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memory) Update(
	ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error),
) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(ErrNotWritten, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	value, _, err := f(time.Time{}, m.values[key])
	if err == nil {
		m.values[key] = value
	}
	return err
}
