package llm

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// An account is what is known of one key: its limits, and what its calls come to.
type account struct {
	of     *Transport
	key    any // its Key, by which others remember it: the account itself may be forgotten
	users  int // calls that have not ended; guarded by the table's lock
	limits [kinds]limit
	going  atomic.Int32 // calls that were sent, and whose usage is not known yet

	input, output ratio

	known   atomic.Bool // all that the headers tell
	mu      sync.Mutex
	probing chan struct{} // closed when the call is over that finds out; nil: there is none
}

// A limit is one of an account's limits.
type limit struct {
	active atomic.Bool
	by     reserve.Reserver
	own    *reserve.Limiter // nil: it is somebody else's

	// Guarded by the account's lock.
	given int // by the user; 0: not
	size  int
	per   time.Duration
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
		k, per := kind(k), time.Minute
		if k == dayRequests || k == dayTokens {
			per = day
		}
		m := &a.limits[k]
		if t.limiters != nil {
			if m.by = t.limiters(names[k], key); m.by != nil {
				m.active.Store(true)
				continue
			}
		}
		m.given, m.size, m.per = given, given, per
		if given == 0 {
			if t.preset.limits[k] == "" {
				continue
			}
			m.size, learns = unknown, true
		}
		m.own = t.policy(k, m.size, per).Limiter()
		m.by = m.own
		m.active.Store(true)
	}
	a.known.Store(!learns)
	return a
}

// policy returns that of a window of so many permits.
func (t *Transport) policy(k kind, n int, per time.Duration) *reserve.Policy {
	n = min(n, unknown)
	if k == requests && t.window > 0 && per == time.Minute && n < unknown {
		whole := n
		n = max(1, int(int64(n)*int64(t.window)/int64(per)))
		per = time.Duration(int64(per) * int64(n) / int64(whole))
	}
	var opts []reserve.Option
	if t.clock != nil {
		opts = append(opts, reserve.WithClock(t.clock))
	}
	return reserve.Must(window.Policy(n, per+t.margin, opts...))
}

// alone is for how long a call goes alone. If it has not brought an answer by then the next one
// goes as well: a server may never answer one, and a long answer may take minutes.
const alone = 10 * time.Second

// open waits until the account's limits are known. While nothing is known of one, a call goes
// alone: it gets a probe, and says when that is over.
func (a *account) open(ctx context.Context) (probe chan struct{}, err error) {
	for !a.known.Load() {
		a.mu.Lock()
		probing := a.probing
		if probing == nil {
			a.probing = make(chan struct{})
			defer a.mu.Unlock()
			return a.probing, nil
		}
		a.mu.Unlock()
		clock := a.of.clock
		if clock == nil {
			clock = clockwork.NewRealClock()
		}
		late := clock.NewTimer(alone)
		select {
		case <-probing:
		case <-late.Chan():
			a.probed(probing)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if late.Stop(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// probed says that the call with that probe is over, or goes alone no longer.
func (a *account) probed(probe chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.probing == probe {
		close(probe)
		a.probing = nil
	}
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
			continue // Anthropic's limit of all tokens is the one of those that is closest
		}
		n, err := strconv.ParseInt(strings.TrimSpace(v[0]), 10, 64)
		switch {
		case err == nil && (n == -1 || n == 0): // Azure's for "not known"
		case err != nil || n < 1 || n > mostLimit:
			a.of.ignored.add(badLimit)
		default:
			told = true
			a.follow(kind(k), int(min(n, unknown)), p.resets[k] != "" && isLong(r.Header.Get(p.resets[k])))
		}
	}
	if !a.known.Load() && (told || r.StatusCode < 300) {
		a.settle()
	}
}

const mostLimit = 1 << 40

// isLong reports whether a bucket takes so long to be full that it is none of a minute.
func isLong(reset string) bool {
	d, err := time.ParseDuration(reset)
	return err == nil && d > longReset
}

// follow takes over a limit that a server has told: never more than the user has given.
func (a *account) follow(k kind, n int, long bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.limits[k]
	if m.own == nil {
		return
	}
	per := m.per
	if m.given > 0 {
		n = min(n, m.given)
	} else if long {
		per = day
	}
	if n == m.size && per == m.per {
		return
	}
	m.size, m.per = n, per
	m.own.SetPolicy(a.of.policy(k, n, per)) // of the same kind
	m.active.Store(true)
}

// settle says that what the server has told is all that it will tell.
func (a *account) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := range a.limits {
		if m := &a.limits[k]; m.own != nil && m.size == unknown {
			m.active.Store(false)
		}
	}
	a.known.Store(true)
}

// isIdle reports whether nothing is held of the account's limits.
func (a *account) isIdle() bool {
	for k := range a.limits {
		if own := a.limits[k].own; own != nil {
			if s := own.Snapshot(); s.Level < s.Capacity {
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
