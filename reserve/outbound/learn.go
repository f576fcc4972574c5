package outbound

import (
	"hash/maphash"
	"iter"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// learned holds the limits that servers name (see "Find the key"), by account, and routes, by host. A call of an
// unknown route is charged to its account's limit; others too, once the server has limited all calls together.
type learned struct {
	accounts *keyed.Limiters[string]
	buckets  *keyed.Limiters[bucket]
	whole    limit // of all calls of an account
	bucket   limit // of calls that share one

	routes  memory[*route]
	bounded memory[struct{}] // accounts whose calls the host limits together
	any     atomic.Bool      // fast path: there are such accounts
	names   memory[*names]   // by account
	several atomic.Bool      // fast path: some account has several names
}

type bucket struct {
	account  string
	key      reply.Key
	resource string // see reply.Resource
}

// A route is a method and path, or all paths with one prefix.
type route struct{ atomic.Pointer[known] }

type known struct {
	key   reply.Key // zero: several
	child uint64    // of a prefix: the first path below that was heard of
	sure  bool      // a second child named the same key, or the route is a whole path
}

// maxPrefixes bounds a path's remembered prefixes ("", "/a", "/a/b"), some 250 bytes together: 16 MB at most (maxKeys).
const maxPrefixes = 6

func newLearned(policy *reserve.Policy) *learned {
	l := &learned{
		accounts: keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }),
		buckets:  keyed.New(func(bucket) (*reserve.Policy, error) { return policy, nil }),
		bucket:   limit{cost: one},
	}
	l.whole = limit{scope: Keyed(account, l.accounts.For), cost: one, whole: true}
	return l
}

type plan struct {
	key     reply.Key // zero: not known
	bounded bool      // the host limits the account's calls together
}

func (l *learned) plan(r *http.Request) (p plan) {
	if l.any.Load() {
		_, p.bounded = l.bounded.get(account(r))
	}
	for hash := range prefixes(r) {
		if of, ok := l.routes.get(hash); ok && of.Load().sure {
			p.key = of.Load().key
			break
		}
	}
	return p
}

// learn notes the key that a response names, for its path and the prefixes.
func (l *learned) learn(r *http.Request, key reply.Key) {
	child := uint64(0) // 0: the whole path
	for hash, path := range prefixes(r) {
		fresh := known{key: key, child: child, sure: child == 0}
		of, remembered := l.routes.get(hash)
		if !remembered {
			first := new(route)
			first.Store(&fresh)
			of = l.routes.getOr(hash, first)
		}
		before := *of.Load()
		switch {
		case before.key != key && child != 0:
			of.Store(&known{sure: true})
		case before.key != key:
			of.Store(&fresh)
		case child == 0 && remembered:
			return // its prefixes know already
		case before.child != child && !before.sure:
			fresh.sure = true
			of.Store(&fresh)
		}
		child = path
	}
}

// prefixes yields the hashes of a request's route and of its path's prefixes, longest first.
func prefixes(r *http.Request) iter.Seq2[uint64, uint64] {
	return func(yield func(route, path uint64) bool) {
		var of maphash.Hash
		of.SetSeed(seed)
		of.WriteString(r.Method + " " + Host(r))
		hash := func(kind byte, path string) uint64 {
			h := of
			h.WriteByte(kind)
			h.WriteString(path)
			return h.Sum64()
		}
		path := r.URL.Path
		if !yield(hash('=', path), hash('^', path)) {
			return
		}
		ends := make([]int, 0, maxPrefixes)
		for i := 0; i < len(path) && len(ends) < maxPrefixes; i++ {
			if path[i] == '/' {
				ends = append(ends, i)
			}
		}
		for n := len(ends) - 1; n >= 0; n-- {
			if prefix := hash('^', path[:ends[n]]); !yield(prefix, prefix) {
				return
			}
		}
	}
}

func (c *call) plan() {
	l, r := c.t.learned, c.subject
	learns, none := c.learns(), len(c.t.limits) == 0
	c.charges, c.named = c.charges[:c.own], nil
	if !learns && (c.t.whole || !l.any.Load()) {
		return
	}
	c.planned = l.plan(r)
	known := learns && c.planned.key != reply.Key{}
	if none && !known || c.planned.bounded && !c.t.whole {
		c.charge(&l.whole, account(r), l.accounts.For(account(r)), 1)
	}
	if known {
		key := bucket{account(r), c.planned.key, resource(r, c.planned.key)}
		c.charge(&l.bucket, key, l.buckets.For(key), 1)
	}
}

func resource(r *http.Request, key reply.Key) string {
	if !key.Each {
		return ""
	}
	return reply.Resource(r)
}

func (c *call) hasLearned(w *way) bool { return len(w.charges) > w.own || c.learns() }

func (c *call) listen(s *reply.Reply) {
	l, r := c.t.learned, c.subject
	c.named = nil
	if len(c.charges) == 0 {
		return
	}
	if s.Key = l.keyOf(r, s); named(c.charges, s.Key.Name) >= 0 { // the caller's own
		for i := range s.Limits {
			if s.Limits[i].Name == "" {
				s.Limits[i].Name = s.Key.Name
			}
		}
	} else if s.Key != (reply.Key{}) && c.learns() {
		l.learn(r, s.Key)
		// A limit that has room did not refuse the call.
		s.Whole = s.Whole || s.Refused && s.HasRoom()
		if key := (bucket{account(r), s.Key, resource(r, s.Key)}); c.charges[len(c.charges)-1].key != any(key) {
			c.name(&l.bucket, key, l.buckets.For(key), len(c.charges))
		}
	}
	if s.Whole && !c.t.whole {
		c.listenToWhole()
	}
}

func (c *call) listenToWhole() {
	l, who := c.t.learned, account(c.subject)
	l.bounded.getOr(who, struct{}{})
	l.any.Store(true)
	if !slices.ContainsFunc(c.concerned(), func(a charge) bool { return a.limit.whole }) {
		c.name(&l.whole, who, l.accounts.For(who), 0)
	}
}

// name adds a limit that the call was not charged for to the limits that its response concerns.
func (c *call) name(l *limit, key any, by reserve.Reserver, at int) {
	a := charge{ask: ask{By: by, Permits: c.charges[0].Permits, Held: new(reserve.Reservation)}, limit: l, key: key, named: true}
	c.use(&a)
	if a.rate != nil {
		a.rate.sent(c.sent, a.Permits)
	}
	c.named = slices.Insert(slices.Clone(c.concerned()), at, a)
}
