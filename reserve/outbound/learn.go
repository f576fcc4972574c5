package outbound

import (
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/recent"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// learned holds the limits that servers name (see PerKey). A call of an unknown route has its account's limit;
// others too, once the server has limited all calls of the account together.
type learned struct {
	buckets *keyed.Limiters[bucket]
	whole   limit // of all calls of an account
	bucket  limit // of calls that share one

	routes recent.Map[uint64, route] // by the hash of a method and path, or of all paths with one prefix
	names  recent.Map[any, *names]   // by account
	firsts recent.Map[any, string]   // the first name that was heard of, by account and the caller's own limit

	alone bool        // the caller has no limits
	any   atomic.Bool // fast path: of some account they hold beside the caller's
}

type bucket struct {
	account  string
	key      reply.Key // zero: all calls of the account
	resource string    // see reply.Resource
}

type route struct {
	key  reply.Key // zero: several
	sure bool      // of a prefix: two paths named the key

	// Of a path: see unnamed.
	window int
	ends   time.Time // of the window
	said   time.Time // first
}

func newLearned(policy *reserve.Policy, alone bool) *learned {
	return &learned{
		alone:   alone,
		buckets: keyed.New(func(bucket) (*reserve.Policy, error) { return policy, nil }),
		bucket:  limit{cost: one},
		whole:   limit{cost: one, whole: true},
	}
}

type plan struct {
	key   reply.Key // zero: not known
	whole bool      // the host limits the account's calls together, or stops them
}

func (l *learned) plan(r *http.Request, alone bool, clock clockwork.Clock) (p plan) {
	if !alone && !l.any.Load() {
		return p
	}
	n, ok := l.names.Get(account(r))
	p.whole = ok && n.whole.Load()
	if !alone && !(ok && n.several.Load()) {
		return p
	}
	var room [maxRoutes]uint64
	for _, hash := range slices.Backward(routesOf(r, room[:0])) {
		if of, known := l.routes.Get(hash); known && of.sure {
			p.key = of.key
			p.whole = p.whole || ok && of.key != (reply.Key{}) && n.stopped.Load() > clock.Now().UnixNano()
			break
		}
	}
	return p
}

// learn notes the key that a response names, for its path and the prefixes.
func (l *learned) learn(r *http.Request, of route) {
	var room [maxRoutes]uint64
	hashes := routesOf(r, room[:0])
	whole := len(hashes) - 1
	of.sure = true
	before, _ := l.routes.Get(hashes[whole])
	if before == of {
		return
	}
	l.routes.Set(hashes[whole], of)
	if of.key == before.key {
		return // its prefixes know already
	}
	for _, hash := range hashes[:whole] {
		prefix, known := l.routes.Get(hash)
		switch {
		case !known:
			l.routes.Set(hash, route{key: of.key})
		case prefix.key != of.key:
			l.routes.Set(hash, route{sure: true})
		case !prefix.sure:
			l.routes.Set(hash, route{key: of.key, sure: true})
		}
	}
}

// maxRoutes bounds a path's remembered prefixes ("", "/a", "/a/b") and itself, some 250 bytes together: 16 MB at most.
const maxRoutes = 7

// routesOf appends the hashes of a path's prefixes, and last its own.
func routesOf(r *http.Request, hashes []uint64) []uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(r.Method + " " + Host(r))
	for _, b := range []byte(r.URL.Path) {
		if b == '/' && len(hashes) < maxRoutes-1 {
			hashes = append(hashes, h.Sum64())
		}
		h.WriteByte(b)
	}
	h.WriteByte(0)
	return append(hashes, h.Sum64())
}

func (c *call) plan(w *way) {
	l, r := c.t.learned, w.subject
	w.charges = w.charges[:w.own]
	alone := c.t.alone(w)
	w.planned = l.plan(r, alone, c.t.watch)
	known := w.planned.key != reply.Key{}
	if alone && !known || w.planned.whole && !c.t.ownsWhole(w.charges) {
		all := bucket{account: account(r)}
		c.charge(w, &l.whole, all, l.buckets.For(all), 1)
	}
	if known {
		key := bucketOf(r, w.planned.key)
		c.charge(w, &l.bucket, key, l.buckets.For(key), 1)
	}
}

func bucketOf(r *http.Request, key reply.Key) bucket {
	of := bucket{account: account(r), key: key}
	if key.Each {
		of.resource = reply.Resource(r)
	}
	return of
}

// listen finds the limits that the response concerns.
func (l *lesson) listen() {
	s, own := &l.said, l.of.way.charges
	if l.charges = own; len(own) == 0 {
		return
	}
	learned, r := l.of.t.learned, l.of.way.subject
	of, learns := l.routeOf(s)
	if s.Key = of.key; own.named(s.Key.Name) != nil { // the caller's own
		for i := range s.Limits {
			if s.Limits[i].Name == "" {
				s.Limits[i].Name = s.Key.Name
			}
		}
	} else if learns {
		learned.learn(r, of)
		// A limit that has room did not refuse the call.
		s.Whole = s.Whole || s.Refused && s.HasRoom() && s.Key != reply.Key{}
		if key := bucketOf(r, s.Key); s.Key != (reply.Key{}) && own[len(own)-1].key != any(key) {
			l.name(&learned.bucket, key, len(own))
		}
	}
	if s.Whole && !l.of.t.ownsWhole(own) {
		l.listenToWhole()
	}
}

func (l *lesson) listenToWhole() {
	learned, who := l.of.t.learned, account(l.of.way.subject)
	learned.namesOf(who).whole.Store(true)
	learned.any.Store(true)
	if l.charges.whole() == nil {
		l.name(&learned.whole, bucket{account: who}, 0)
	}
}

// name adds a learned limit that the call was not charged for to the limits that its response concerns.
func (l *lesson) name(of *limit, key bucket, at int) {
	by := l.of.t.learned.buckets.For(key)
	a := charge{
		By: by, of: lim.Of(by), Permits: l.charges[0].Permits, Held: new(reserve.Reservation),
		limit: of, key: key, named: true,
	}
	l.of.t.use(&a, l.of.way.subject, l.states)
	if a.rate != nil {
		a.rate.change(func(rate *adapt.Rate) { rate.Sent(l.of.sent, float64(a.Permits)) })
	}
	l.charges = slices.Insert(slices.Clone(l.charges), at, a)
}

// names are the limits of an account that responses have told apart.
type names struct {
	several atomic.Bool  // two, for the calls of one limit of the caller's
	whole   atomic.Bool  // the host limits all calls together
	stopped atomic.Int64 // the end of a stop of all calls, in nanoseconds since 1970

	mu      sync.Mutex
	known   map[string]struct{}
	windows map[float64][]time.Time // of limits without a name, by their size: when they end
	rolling bool                    // windows have no fixed ends
}

const (
	// maxNames bounds an account's names, some 700 bytes each while stopped; further calls have the account's limit.
	maxNames = 1000
	// A window's end is in whole seconds, and known as fixed when it was the same for steady.
	steady = 2 * offBy
)

func (l *learned) namesOf(who string) *names {
	return l.names.GetOr(who, func() *names {
		return &names{known: map[string]struct{}{}, windows: map[float64][]time.Time{}}
	})
}

// routeOf returns which limit a response speaks of, and whether that holds beside the caller's. The key is zero if the
// response does not tell, or there is only one.
func (l *lesson) routeOf(s *reply.Reply) (of route, learns bool) {
	if s.Key == (reply.Key{}) && len(s.Limits) == 0 {
		return of, false
	}
	learned, who := l.of.t.learned, account(l.of.way.subject)
	n := learned.namesOf(who)
	n.mu.Lock()
	defer n.mu.Unlock()
	if of.key = s.Key; of.key.Name == "" {
		of = l.unnamed(n, s)
	}
	if _, known := n.known[of.key.Name]; !known && of.key.Name != "" {
		if len(n.known) >= maxNames {
			return route{}, false
		}
		n.known[of.key.Name] = struct{}{}
	}
	own := l.of.way.charges[:l.of.way.own]
	if len(own) > 0 && of.key.Name != "" && !n.several.Load() && l.of.t.upstreams == nil {
		a := own.target("", "")
		first := learned.firsts.GetOr(keys{keys{a.limit, a.key}, who}, func() string { return of.key.Name })
		if first != of.key.Name {
			n.several.Store(true)
			learned.any.Store(true)
		}
	}
	return of, l.of.t.alone(l.of.way) || n.several.Load()
}
