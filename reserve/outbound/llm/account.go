package llm

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nextfree/pace/reserve"
)

type account struct {
	of     *Transport
	key    any                       // its Key, by which outbound remembers it: the account itself may be forgotten
	users  map[kind]reserve.Reserver // of [WithLimiters]
	limits [kinds]limit
	flight flight
	queued int32       // calls that have no response yet; guarded by the table's lock
	spaced atomic.Bool // calls go in the distances that its shares allow

	mu      sync.Mutex
	classes []*class    // maxClasses at most
	spans   [kinds]span // of the limits that are told
}

// newAccount unlocks the table.
func (t *Transport) newAccount(key Key) *account {
	t.table.mu.Unlock()
	defer t.table.mu.Lock()
	a := &account{of: t, key: key}
	if t.limiters != nil {
		a.users = map[kind]reserve.Reserver{}
		for k := range calls {
			a.users[k] = t.limiters(names[k], key)
		}
	}
	return a
}

func (a *account) classOf(kind kindOfCall) *class {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.classes, func(c *class) bool { return c.kind == kind }); i >= 0 {
		return a.classes[i]
	}
	if len(a.classes) == maxClasses {
		return a.classes[maxClasses-1]
	}
	c := &class{kind: kind, outputs: guessedOutput}
	if (kind.state || kind.blobs) && a.of.settles {
		c.first.init(true)
	}
	a.classes = append(a.classes, c)
	return c
}

// isLimited reports whether a limit a minute is known.
func (a *account) isLimited() bool {
	return a.isActive(requests) || a.isActive(tokens) || a.isActive(inputTokens) || a.isActive(outputTokens)
}

// isKnown reports whether all limits that the server tells are known.
func (a *account) isKnown() bool {
	return !slices.ContainsFunc(a.of.preset.tells, func(k kind) bool { return !a.isActive(k) })
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
	accounts accounts
	others   accounts // one, of keys that found no place
}

type accounts map[Key]*account

// looked bounds the search for an idle account.
const looked = 16

// enter returns a key's account, which is not forgotten before the call leaves it.
func (t *Transport) enter(key Key) *account {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	a := t.place(t.table.accounts, key, t.maxKeys)
	if a == nil {
		t.ignored.add(&t.ignored.Crowded)
		a = t.place(t.table.others, Key{}, 1)
	}
	a.queued++
	return a
}

// leave ends a call's keeping of its account: its charges do from now on.
func (a *account) leave() {
	a.of.table.mu.Lock()
	defer a.of.table.mu.Unlock()
	a.queued--
}

// place returns a key's account; nil if there is no place for a fresh one. It unlocks the table for as long as it asks
// a function of the user's.
func (t *Transport) place(in accounts, key Key, places int) *account {
	if in[key] != nil {
		return in[key]
	}
	a := t.newAccount(key)
	if in[key] == nil && (len(in) < places || in.forget()) {
		a.give(t.limitsOf(key.Model))
		a.flight.init(!a.isKnown())
		in[key] = a
	}
	return in[key]
}

func (in accounts) forget() bool {
	n := 0
	for key, a := range in { // in random order
		if a.queued == 0 && a.isIdle() {
			delete(in, key)
			return true
		}
		if n++; n == looked {
			break
		}
	}
	return false
}

// limitsOf must be called with the table locked.
func (t *Transport) limitsOf(model string) Limits {
	if l, ok := t.settings.limits[model]; ok {
		return l
	}
	return t.given
}
