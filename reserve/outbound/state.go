package outbound

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

// A Snapshot is the state of a transport's limits: see [Transport.Snapshot].
type Snapshot struct {
	Limits []LimitState // most waiting calls first
}

// A LimitState is the state of one limit, for one of its keys.
type LimitState struct {
	Name         string    // as hooks show it
	Key          string    // "": for all calls; a hash if it holds a credential
	Rate         float64   // permits per second; +Inf: none, or none known; 0: the limiter can't tell
	Stored       float64   // permits stored now; 0 while permits are owed
	Waiting      int       // calls that wait, for any of their limits
	InFlight     int       // attempts without an answer yet
	StoppedUntil time.Time // the end of the server's stop; zero: none now
	Refused      uint64    // attempts that the server refused because of this limit
	// Misfit says what was told and what was seen, if the server refused more than half of the latest 50 attempts: "told
	// 50 in 1s; the server takes about 10 at once and 50 a second". Else it is empty.
	Misfit string
}

// Snapshot returns the state of all limits and keys in use or stopped, learned ones too, and of up to 1,024 that were
// used. It takes nothing. Numbers of different limits may be of different moments.
func (t *Transport) Snapshot() Snapshot {
	var s Snapshot
	now := t.now()
	for _, l := range t.states.all() {
		s.Limits = append(s.Limits, l.look(now))
	}
	slices.SortFunc(s.Limits, func(a, b LimitState) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), b.StoppedUntil.Compare(a.StoppedUntil),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	return s
}

// A limitState is what a transport knows of one limit for one key.
type limitState struct {
	name, key string
	by        reserve.Reserver
	of        lim.Limit                  // by
	seats     *queue.Places              // by, if it is places
	places    int                        // by is so many places in flight; 0: a limiter
	pause     *reserve.Limiter           // stops an upstream, or a limiter that can't be paused; nil: not needed
	rate      atomic.Pointer[controller] // nil: not adaptive
	users     atomic.Int64               // calls
	waiting   atomic.Int64
	out       atomic.Int64
	refused   atomic.Uint64
	stopped   atomic.Int64 // the end of the stop, in nanoseconds since 1970
	accepted  atomic.Int64 // the latest acceptance, as stopped
	emptied   atomic.Int32 // refusals in a row
	block     atomic.Pointer[adapt.Block]
	belief    atomic.Pointer[belief]
	room      atomic.Pointer[room]
	clock     serverClock
}

func (l *limitState) look(now time.Time) LimitState {
	s := LimitState{
		Name: l.name, Key: l.key, Waiting: int(l.waiting.Load()), InFlight: int(l.out.Load()) + l.taken(),
		Refused:      l.refused.Load(),
		StoppedUntil: l.stop(now),
		Misfit:       l.belief.Load().misfit(now),
	}
	if l.places == 0 {
		o, _ := l.of.Outlook()
		s.Rate, s.Stored = l.of.Rate(), o.Stored
	}
	if c := l.rate.Load(); c != nil {
		s.Rate = min(s.Rate, c.limiter.Rate())
	}
	if even := l.even(); even != nil {
		s.Rate = min(s.Rate, even.Rate())
	}
	return s
}

func (l *limitState) stop(now time.Time) time.Time {
	if end := l.stopped.Load(); end > now.UnixNano() {
		return time.Unix(0, end)
	}
	return time.Time{}
}

// even returns the limiter that spaces the limit's calls; nil: there is none.
func (l *limitState) even() *reserve.Limiter {
	if c := l.rate.Load(); c != nil {
		return c.even
	}
	if b := l.belief.Load(); b != nil {
		return b.even.Load()
	}
	return nil
}

type limitStates struct {
	mu    sync.Mutex
	of    map[keys]*limitState
	sweep int // the size at which idle ones are forgotten
}

// idleStates is how many states are kept even if idle, some 2,000 bytes each.
const idleStates = 1024

func (t *limitStates) forget(now time.Time) {
	maps.DeleteFunc(t.of, func(k keys, s *limitState) bool { return k.key != any(sharedKey{}) && !s.needed(now) })
	t.sweep = 2 * len(t.of)
}

func (l *limitState) needed(now time.Time) bool {
	block := l.block.Load()
	return l.users.Load() > 0 || !l.stop(now).IsZero() || l.taken() > 0 || block != nil && block.On()
}

// taken returns how many of its places in flight are taken.
func (l *limitState) taken() int {
	if l.seats == nil {
		return 0
	}
	return l.seats.Out()
}

func (t *limitStates) all() []*limitState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.of))
}

// credentials matches the names of headers that hold some.
var credentials = regexp.MustCompile("(?i)auth|cookie|key|token|secret")

// shownKey hashes a key that holds a credential of the request.
func shownKey(key any, r *http.Request) string {
	var text string
	switch key := key.(type) {
	case sharedKey:
		return ""
	case bucket:
		text = key.account
	default:
		text = fmt.Sprint(key)
	}
	for name, values := range r.Header {
		if credentials.MatchString(name) && slices.ContainsFunc(values, func(v string) bool { return holdsSecret(text, v) }) {
			return fmt.Sprintf("#%x", maphash.String(seed, text))
		}
	}
	return text
}

// holdsSecret reports whether text holds a word of a header's value, of at least 8 letters.
func holdsSecret(text, value string) bool {
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ,;=", r) }) {
		if len(word) >= 8 && strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// until returns when a call that comes now would go; zero: unknown.
func (l *limitState) until(now time.Time) time.Time {
	o, known := l.of.Outlook()
	if !known {
		return time.Time{}
	}
	at, rate := now.Add(o.Wait), o.Rate
	if even := l.even(); even != nil {
		rate = min(rate, even.Rate())
		if free := even.NextFree(); free.After(at) {
			at = free
		}
	}
	ahead := float64(max(0, l.waiting.Load()-2)) / rate // the first has reserved, one is the call itself
	if at.Before(now) {
		at = now
	}
	return at.Add(time.Duration(min(ahead*1e9, float64(math.MaxInt64/4))))
}

func (l *limitState) probing() bool {
	c := l.rate.Load()
	return c != nil && c.probes()
}
