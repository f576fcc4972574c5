package llm

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nextfree/pace/reserve"
)

type account struct {
	of     *Transport
	key    any                      // its Key, by which outbound remembers it: the account itself may be forgotten
	queued int                      // calls that were not sent yet; guarded by the table's lock
	users  *[calls]reserve.Reserver // of [WithLimiters]; nil: it was not given
	limits [kinds]limit
	flight flight
	known  atomic.Bool // all that the headers tell
	spaced atomic.Bool // calls go in the distances that its shares allow

	mu      sync.Mutex
	classes []*class // maxClasses at most
}

func (t *Transport) newAccount(key Key, l Limits) *account {
	a := &account{of: t, key: key}
	if t.limiters != nil {
		a.users = new([calls]reserve.Reserver)
		for k := range a.users {
			a.users[k] = t.limiters(names[k], key)
		}
	}
	a.give(l)
	a.flight.gate = newGate(math.MaxInt)
	if slices.ContainsFunc(t.preset.tells, func(k kind) bool { return !a.isActive(k) }) {
		a.flight.gate = newGate(1)
	}
	a.known.Store(a.flight.n > 1)
	return a
}

func (a *account) classOf(kind kindOfCall) *class {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.classes {
		if c.kind == kind {
			return c
		}
	}
	if len(a.classes) == maxClasses {
		return a.classes[maxClasses-1]
	}
	c := &class{kind: kind}
	if kind.state {
		c.first = newGate(1)
	}
	a.classes = append(a.classes, c)
	return c
}

// heard lets the other calls go. Calls that wait at other deployments look again.
func (a *account) heard() {
	if a.known.CompareAndSwap(false, true) {
		a.flight.open()
	}
}

func (a *account) countsTokens() bool {
	return a.isActive(tokens) || a.isActive(inputTokens) || a.isActive(outputTokens) || a.isActive(dayTokens)
}

func (a *account) isIdle() bool {
	for k := range kinds {
		if l := a.limiter(k); l != nil {
			if s := l.Snapshot(); s.Level < s.Capacity || !s.PausedUntil.IsZero() {
				return false
			}
		}
	}
	return true
}

type table struct {
	mu       sync.Mutex
	accounts map[Key]*account
	others   *account // of keys that found no place
}

// looked bounds the search for an idle account.
const looked = 16

func (t *Transport) enter(key Key) *account {
	b := &t.table
	b.mu.Lock()
	a := b.accounts[key]
	if a == nil {
		b.mu.Unlock()
		fresh := t.newAccount(key, t.limitsOf(key.Model)) // under no lock: it may ask a function of the user's
		b.mu.Lock()
		if a = b.accounts[key]; a == nil {
			a = b.place(key, fresh, t.maxKeys)
		}
	}
	if a != nil {
		a.queued++
		b.mu.Unlock()
		return a
	}
	b.mu.Unlock()
	t.ignored.add(crowded)
	a = t.others()
	b.mu.Lock()
	defer b.mu.Unlock()
	a.queued++
	return a
}

// place returns nil if there is none. It must be called with the table locked.
func (b *table) place(key Key, a *account, places int) *account {
	if len(b.accounts) >= places {
		n := 0
		for other, idle := range b.accounts { // in random order
			if idle.queued == 0 && idle.isIdle() {
				delete(b.accounts, other)
				break
			}
			if n++; n == looked {
				break
			}
		}
		if len(b.accounts) >= places {
			return nil
		}
	}
	b.accounts[key] = a
	return a
}

func (t *Transport) leave(a *account) {
	t.table.mu.Lock()
	a.queued--
	t.table.mu.Unlock()
}

func (t *Transport) limitsOf(model string) Limits {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if l, ok := t.settings.limits[model]; ok {
		return l
	}
	return t.given
}
