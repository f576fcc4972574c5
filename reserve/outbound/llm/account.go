package llm

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// An account is what is known of one key: its limits, and what its calls use.
type account struct {
	of     *Transport
	key    any           // its Key, by which outbound remembers it: the account itself may be forgotten
	users  int           // calls that were not sent yet; guarded by the table's lock
	limits [kinds]*limit // nil: there is none
	going  atomic.Int32  // calls that were sent, and whose usage is not known yet

	known atomic.Bool // all that the headers tell
	first turnstile   // until known

	mu      sync.Mutex
	classes []*class // maxClasses at most
}

// A limit is one of an account's limits.
type limit struct {
	by     reserve.Reserver
	own    *reserve.Limiter // nil: by is the user's
	active atomic.Bool

	// Guarded by the account's lock.
	given, size int32 // by the user, 0: not; and now
	low         int32 // a far lower limit that the latest response told; 0: it told none
	told        bool  // a response has told size
	daily       bool  // it holds for a day
}

const (
	day = 24 * time.Hour
	// Of a limit that is not known yet, so much may be used in a window.
	unknown = math.MaxInt32
	// A bucket that holds a minute's worth is full after a minute: one that takes so long holds
	// more.
	longReset = 90 * time.Second
)

// newAccount returns the account of a key.
func (t *Transport) newAccount(key Key, l Limits) *account {
	a := &account{of: t, key: key}
	learns := false
	for k, given := range l.list() {
		k, m := kind(k), &limit{}
		if t.limiters != nil {
			if m.by = t.limiters(names[k], key); m.by != nil {
				m.active.Store(true)
				a.limits[k] = m
				continue
			}
		}
		m.given = int32(min(given, unknown))
		m.size, m.daily = m.given, k.isDaily()
		if given == 0 {
			if t.preset.limits[k] == "" {
				continue
			}
			m.size, learns = unknown, true
		}
		m.own = t.policy(k, m.size, m.daily).Limiter()
		m.by = m.own
		if t.changed != nil {
			(*engine.Limiter)(m.own).Watch(func(bool) bool {
				t.changed()
				return true
			})
		}
		m.active.Store(true)
		a.limits[k] = m
	}
	a.known.Store(!learns)
	return a
}

// isActive reports whether the account has a limit of a kind.
func (a *account) isActive(k kind) bool { return a.limits[k] != nil && a.limits[k].active.Load() }

// classOf returns the class of calls of a kind.
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
	a.classes = append(a.classes, c)
	return c
}

// observe learns from a response what the limits are.
func (a *account) observe(r *http.Response) {
	p := a.of.preset
	told := false
	for k, name := range p.limits {
		if name == "" {
			continue
		}
		v := r.Header[name]
		if len(v) == 0 || kind(k) == tokens && p.limits[inputTokens] != "" && len(r.Header[p.limits[inputTokens]]) > 0 {
			continue // Anthropic's limit of all tokens is the closest of the others
		}
		n, err := strconv.ParseInt(strings.TrimSpace(v[0]), 10, 64)
		switch {
		case err == nil && (n == -1 || n == 0): // Azure's for "not known"
		case err != nil || n < 1 || n > mostLimit:
			a.of.ignored.add(badLimit)
		default:
			told = true
			a.follow(kind(k), int32(min(n, unknown)), p.resets[k] != "" && isLong(r.Header.Get(p.resets[k])))
		}
	}
	if !a.known.Load() && (told || r.StatusCode < 300) {
		a.stopLearning()
	}
}

const mostLimit = 1 << 40

// isLong reports whether the reset time shows a limit longer than a minute.
func isLong(reset string) bool {
	d, err := time.ParseDuration(reset)
	return err == nil && d > longReset
}

// follow takes over a limit that a server has told: never more than the user has given. One that is less than half of
// what it was must be told twice in succession.
func (a *account) follow(k kind, n int32, long bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.limits[k]
	if m == nil || m.own == nil {
		return
	}
	daily := m.daily
	if m.given > 0 {
		n = min(n, m.given)
	} else if long {
		daily = true
	}
	if m.size != unknown && n < m.size/2 && m.low != n { // perhaps of a gateway: the next response must say so, too
		m.low = n
		a.of.ignored.add(badLimit)
		return
	}
	m.low, m.told = 0, true
	if n == m.size && daily == m.daily {
		return
	}
	m.size, m.daily = n, daily
	_ = m.own.SetPolicy(a.of.policy(k, n, daily)) // of the same kind
	m.active.Store(true)
}

// stopLearning decides that limits that the server has not announced by now do not exist.
func (a *account) stopLearning() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.limits {
		if m != nil && m.own != nil && m.size == unknown {
			m.active.Store(false)
		}
	}
	a.known.Store(true)
}

// isIdle reports whether nothing is held of the account's limits.
func (a *account) isIdle() bool {
	for _, m := range a.limits {
		if m != nil && m.own != nil {
			if s := m.own.Snapshot(); s.Level < s.Capacity {
				return false
			}
		}
	}
	return true
}

// A table has the accounts of keys: of so many at most.
type table struct {
	mu       sync.Mutex
	accounts map[Key]*account
	others   *account // of keys that found no place
}

// looked is how many accounts a new key looks at for one that is idle.
const looked = 16

// enter returns the account of a key, for a call that leaves it when it ends.
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
		a.users++
		b.mu.Unlock()
		return a
	}
	b.mu.Unlock()
	t.ignored.add(crowded)
	others := t.newAccount(Key{}, t.given)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.others == nil {
		b.others = others
	}
	b.others.users++
	return b.others
}

// place gives an account a place, if there is one. The table must be locked.
func (b *table) place(key Key, a *account, places int) *account {
	if len(b.accounts) >= places {
		n := 0
		for other, idle := range b.accounts { // in random order
			if idle.users == 0 && idle.isIdle() {
				delete(b.accounts, other)
				break
			}
			if n++; n == looked {
				break
			}
		}
		if len(b.accounts) >= places {
			if b.others != nil {
				a.of.ignored.add(crowded)
			}
			return b.others
		}
	}
	b.accounts[key] = a
	return a
}

func (t *Transport) leave(a *account) {
	t.table.mu.Lock()
	a.users--
	t.table.mu.Unlock()
}

func (t *Transport) limitsOf(model string) Limits {
	if l, ok := t.settings.limits[model]; ok {
		return l
	}
	return t.given
}
