package shared

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// Keyed is a limiter for each key: tenants, users, addresses. In the store each key is a limiter of its own:
// "pace:users:{...}" for a policy that [reserve.WithName] has named "users", with a hash of the key.
//
// Processes whose policies have one name share the limits, also while a deploy changes the policy. A policy without a
// name has one made of its numbers: with a changed policy each key begins anew.
//
// Its methods mean what [Limiter]'s do, and may be called concurrently. A process remembers only keys that are in use,
// in debt, or owe the store permits: see [WithMaxKeys].
type Keyed struct {
	*family
	terms *terms
	under string // what its keys' names in the store begin with

	mu   sync.Mutex
	keys map[known]*entry
}

type entry struct {
	*Limiter
	users int
}

// NewKeyed returns limiters of a policy. Its errors are [New]'s, and a *[reserve.ValueError] for a name with braces.
func NewKeyed(client Scripter, policy *reserve.Policy, opts ...Option) (*Keyed, error) {
	return newMany(ofScripter(client, true), policy, opts)
}

func newMany(of opener, policy *reserve.Policy, opts []Option) (*Keyed, error) {
	f, t, err := prepare(of, policy, opts)
	if err != nil {
		return nil, err
	}
	f.maxKeys = cmp.Or(f.maxKeys, 1<<20)
	name := cmp.Or(f.limitName, t.fingerprint())
	if strings.ContainsAny(name, "{}") {
		return nil, valueError("policy's name", name, "no braces, which choose the node of a cluster")
	}
	return &Keyed{family: f, terms: t, under: f.prefix + ":" + name + ":{", keys: map[known]*entry{}}, nil
}

func (k *Keyed) For(key string) reserve.Reserver { return forKey{limiters: k, key: key} }

func use[T any](k *Keyed, key string, do func(*Limiter) (T, error)) (result T, err error) {
	e, err := k.enter(key)
	if err != nil {
		return result, err
	}
	defer k.leave(e)
	return do(e.Limiter)
}

// ReserveWithin is [Limiter.ReserveWithin] of a key.
func (k *Keyed) ReserveWithin(
	ctx context.Context, key string, n int, maxWait time.Duration,
) (reserve.Reservation, error) {
	return use(k, key, func(l *Limiter) (reserve.Reservation, error) { return l.ReserveWithin(ctx, n, maxWait) })
}

// Acquire is [Limiter.Acquire] of a key.
func (k *Keyed) Acquire(ctx context.Context, key string, n int) (waited time.Duration, err error) {
	return use(k, key, func(l *Limiter) (time.Duration, error) { return l.Acquire(ctx, n) })
}

// TryAcquire is [Limiter.TryAcquire] of a key.
func (k *Keyed) TryAcquire(ctx context.Context, key string, n int) (bool, error) {
	return use(k, key, func(l *Limiter) (bool, error) { return l.TryAcquire(ctx, n) })
}

// Snapshot is [Limiter.Snapshot] of a key.
func (k *Keyed) Snapshot(ctx context.Context, key string) (Snapshot, error) {
	return use(k, key, func(l *Limiter) (Snapshot, error) { return l.Snapshot(ctx) })
}

// Decide is [Limiter.Decide] of a key.
func (k *Keyed) Decide(ctx context.Context, key string, n int) (Decision, error) {
	return use(k, key, func(l *Limiter) (Decision, error) { return l.Decide(ctx, n) })
}

// Reset is [Limiter.Reset] of a key.
func (k *Keyed) Reset(ctx context.Context, key string) error {
	_, err := use(k, key, func(l *Limiter) (struct{}, error) { return struct{}{}, l.Reset(ctx) })
	return err
}

// Len returns how many keys this process remembers.
func (k *Keyed) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.keys)
}

// swept keys are looked at for each new key: more than one, so that useless keys can't outgrow the rest.
const swept = 4

// stored returns the key's name in the store, which can't be another limiter's.
func (k *Keyed) stored(key string) string {
	sum := sha256.Sum256([]byte(key))
	return k.under + base64.RawURLEncoding.EncodeToString(sum[:16]) + "}"
}

type known struct {
	text   string
	hashed bool // it is a long key's name in the store
}

const mostKnown = 128 // bytes of a key that a process remembers

func (k *Keyed) enter(of string) (*entry, error) {
	key := known{text: of}
	if len(of) > mostKnown {
		key = known{k.stored(of), true}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.keys[key]
	if e == nil {
		n := 0
		for other, idle := range k.keys { // in random order
			if idle.users == 0 && idle.forgettable() {
				delete(k.keys, other)
			}
			if n++; n == swept {
				break
			}
		}
		if len(k.keys) >= k.maxKeys {
			return nil, keyed.ErrTooManyKeys
		}
		e = &entry{Limiter: newLimiter(k.family, k.stored(of), k.terms)}
		k.keys[key] = e
	}
	e.users++
	return e, nil
}

func (k *Keyed) leave(e *entry) {
	k.mu.Lock()
	e.users--
	k.mu.Unlock()
}

func (l *Limiter) forgettable() bool {
	now := l.now()
	return now >= l.busy.Load() && l.queue.idle() && l.stock.empty() && l.owed.forgotten(now, l.terms.Load().curve)
}
