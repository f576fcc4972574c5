package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("pool")

// A Member can serve a request.
type Member[T any] struct {
	Value T // an API key, a base URL, a client
	// By is the member's limit; members of an account share a limiter.
	By reserve.Reserver
	// Tier: a lower tier is preferred if it takes at most [WithSlack] longer. Default: 0.
	Tier int
}

// A Pool is several members. All methods may be called at the same time.
type Pool[T any] struct {
	*members[T]
	key string // of Sticky; "" if it isn't
}

type members[T any] struct {
	list    []Member[T]
	options []queue.Option
	limits  []limit.Limit      // of the members
	pauses  []*reserve.Limiter // of the members
	queue   *queue.Queue
}

type settings struct {
	slack time.Duration
	clock clockwork.Clock
}

// An Option changes one setting of [New].
type Option func(*settings) error

// WithSlack is how much longer than for the earliest member a request may wait for a member of a lower tier, or for
// that of its key ([Pool.Sticky]). Default: 0.
func WithSlack(d time.Duration) Option {
	return func(s *settings) error {
		if s.slack = d; d < 0 {
			return valueError("WithSlack", d, "0 or more")
		}
		return nil
	}
}

// WithClock replaces the clock, for tests. It must be the limits'. Only Now, Since, NewTimer and AfterFunc are used.
// Default: the real clock.
func WithClock(c clockwork.Clock) Option {
	return func(s *settings) error {
		if s.clock = c; isnil.Value(c) {
			return valueError("WithClock", nil, "a clock")
		}
		return nil
	}
}

// New returns a pool of these members. It returns a *[reserve.ValueError] if there are none, one has no limit, or an
// option makes no sense.
func New[T any](list []Member[T], opts ...Option) (*Pool[T], error) {
	var s settings
	for _, opt := range opts {
		if opt == nil {
			return nil, valueError("an option", nil, "an option")
		}
		if err := opt(&s); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, valueError("the number of members", 0, "at least 1")
	}
	m := &members[T]{list: slices.Clone(list)}
	for i, one := range list {
		if isnil.Value(one.By) {
			return nil, valueError(fmt.Sprintf("By of member %d", i), nil, "a Reserver")
		}
		pause := queue.Unlimited(s.clock).Limiter()
		m.pauses, m.limits = append(m.pauses, pause), append(m.limits, limit.Of(one.By))
		limits := append(queue.Limits(one.By), queue.Limit{By: limit.Of(pause), Permits: 1})
		m.options = append(m.options, queue.Option{Limits: limits, Tier: one.Tier})
	}
	var keys queue.Sticky
	m.queue = queue.New(queue.Settings{
		Clock: s.clock, Detour: s.slack, Prefers: keys.Prefers, Granted: keys.Granted,
	}, m.options)
	return &Pool[T]{members: m}, nil
}

// Sticky returns the pool for requests of a key, such as a conversation, which get the member that served the key last,
// if that takes at most [WithSlack] longer. At least 32,768 keys are remembered. The key "" is none.
func (p *Pool[T]) Sticky(key string) *Pool[T] { return &Pool[T]{members: p.members, key: key} }

// Acquire waits for n permits (at least 1) of the earliest member. For errors see [Pool.ReserveWithin].
func (p *Pool[T]) Acquire(ctx context.Context, n int) (Lease[T], error) {
	place, err := p.enter(ctx, p.key, n, reserve.Forever)
	if err == nil {
		err = limit.Named(place.Wait(ctx), p.name)
	}
	if err != nil {
		return Lease[T]{}, err
	}
	return p.lease(place), nil
}

// ReserveWithin reserves n permits (at least 1) of the earliest member, if that is within maxWait and the context's
// deadline. Otherwise it takes nothing and returns a *[reserve.WaitError] with that member's time, or a
// *[reserve.SizeError] if no member ever grants as many.
func (p *Pool[T]) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (Lease[T], error) {
	place, err := p.enter(ctx, p.key, n, maxWait)
	if err != nil {
		return Lease[T]{}, err
	}
	return p.lease(place), nil
}

func (m *members[T]) lease(place *queue.Place) Lease[T] {
	return Lease[T]{Reservation: place.Reservation(), place: place, members: m}
}

func (m *members[T]) enter(ctx context.Context, key string, n int, maxWait time.Duration) (*queue.Place, error) {
	if n < 1 {
		return nil, valueError("permits", n, "at least 1")
	}
	place := &queue.Place{Permits: n, Options: m.options, Key: key}
	return place, limit.Named(m.queue.Enter(ctx, place, maxWait), m.name)
}

func (m *members[T]) name() string {
	name := m.limits[0].Name()
	for _, l := range m.limits {
		if l.Name() != name {
			return ""
		}
	}
	return name
}

// Reserver returns the pool as a Reserver, for package fair.
//
// As a limit it is the members together. Its Rate is their sum; 0 if one can't tell. A server's stop stops all members:
// give package outbound the members as upstreams to stop one.
func (p *Pool[T]) Reserver() reserve.Reserver {
	return limit.OneOf(door[T]{p}, p.limits...)
}

type door[T any] struct{ *Pool[T] }

func (r door[T]) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	key, ok := queue.StickyOf(ctx)
	if !ok {
		key = r.key
	}
	place, err := r.enter(ctx, key, n, maxWait)
	if err != nil {
		return reserve.Reservation{}, err
	}
	return place.Reservation(), nil
}

// WithKey returns a context whose requests to [Pool.Reserver] or upstreams are sticky: see [Pool.Sticky].
func WithKey(ctx context.Context, key string) context.Context {
	return queue.WithSticky(ctx, key)
}

// Of returns the member that serves a reservation made through [Pool.Reserver]: its value and number; ok is false if
// there is none so far.
func (p *Pool[T]) Of(r *reserve.Reservation) (value T, member int, ok bool) {
	if place := p.queue.PlaceOf(r); place != nil {
		if i := place.Option(); i >= 0 {
			return p.list[i].Value, i, true
		}
	}
	return value, -1, false
}

// PauseUntil stops a member (its number in New's list) until t: its requests go to others. It does not pause the
// limiter, which members may share.
func (p *Pool[T]) PauseUntil(member int, t time.Time) {
	p.pauses[member].PauseUntil(t)
	p.queue.Look()
}

// Drop takes a member (its number in New's list) out of use; its leases stay. When all members are dropped, requests
// get a *[reserve.WaitError] with a Wait of [reserve.Forever].
func (p *Pool[T]) Drop(member int) {
	p.queue.Close(member, true)
}

// Resume ends a member's pause or Drop.
func (p *Pool[T]) Resume(member int) {
	p.pauses[member].Resume()
	p.queue.Close(member, false)
}

// Waiting returns how many requests wait.
func (p *Pool[T]) Waiting() int { return p.queue.Waiting() }
