package fair

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("fair")

// A Class is a kind of requests, such as a batch's.
type Class struct {
	Name string
	// Priority: a higher one goes first; it may be negative. Default: 0.
	Priority int
	// Weight is its share among the classes of its priority: with 3 beside 1, three permits of four. Default: 1.
	Weight float64
	// MaxAge is the wait after which a request goes as if its priority were one higher; 0: never.
	MaxAge time.Duration
	// Limit is charged for this class alone, beside the queue's limit; while it has no room, other classes go. Default:
	// none.
	Limit reserve.Reserver
	// MaxQueue is how many requests may wait before others get a *[FullError]; 0: any number.
	MaxQueue int
}

// A Queue is a [reserve.Reserver]: an order of requests in front of a limit. All methods may be called at the same
// time.
type Queue struct {
	queue   *queue.Queue
	classes []Class
	byName  map[string]int
	asks    [][]queue.Option // by class
	settings
	limit limit.Limit // of all classes
}

type settings struct {
	tenants bool
	weight  func(tenant string) float64
	clock   clockwork.Clock
}

// An Option changes one setting of [New].
type Option func(*settings) error

// WithTenants shares a class's permits among its tenants, such as customers, by their weights. The function is called
// for each request, under no lock; a weight that is not positive and finite is the request's error. Nil: each weight is
// 1. Default: no tenants.
func WithTenants(weight func(tenant string) float64) Option {
	return func(s *settings) error {
		s.tenants, s.weight = true, weight
		return nil
	}
}

// WithClock replaces the clock, for tests. It must be the limit's; only Now, Since and AfterFunc are used. Default: the
// real clock.
func WithClock(c clockwork.Clock) Option {
	return func(s *settings) error {
		if s.clock = c; isnil.Value(c) {
			return valueError("WithClock", nil, "a clock")
		}
		return nil
	}
}

// New returns a queue of these classes in front of any Reserver. Limits of a [reserve.All] are charged when a request
// goes.
//
// Your own Reserver may block or panic in ReserveWithin: callers with a deadline leave in time, and the panic reaches
// the caller that asked. The other methods of its reservations must return at once.
//
// It returns a *[reserve.ValueError] if by is nil, there is no class, two have the same name, or a number makes no
// sense.
func New(by reserve.Reserver, classes []Class, opts ...Option) (*Queue, error) {
	if isnil.Value(by) {
		return nil, valueError("the limit", nil, "a Reserver")
	}
	q := &Queue{classes: slices.Clone(classes), byName: map[string]int{}, limit: limit.Of(by)}
	for _, opt := range opts {
		if opt == nil {
			return nil, valueError("an option", nil, "an option")
		}
		if err := opt(&q.settings); err != nil {
			return nil, err
		}
	}
	if err := check(classes); err != nil {
		return nil, err
	}
	set := queue.Settings{Clock: q.clock, Full: func(class int) error {
		return &FullError{Class: q.classes[class].Name, MaxQueue: q.classes[class].MaxQueue}
	}}
	limits := queue.Limits(by)
	shared := limits[:len(limits):len(limits)]
	for i, c := range classes {
		q.byName[c.Name] = i
		class := queue.Class(c)
		set.Classes = append(set.Classes, class)
		q.asks = append(q.asks, []queue.Option{{Limits: append(shared, class.Own()...)}})
	}
	q.queue = queue.New(set, q.asks...)
	return q, nil
}

func check(classes []Class) error {
	bad := func(c Class, field string, value any, want string) error {
		return valueError(fmt.Sprintf("%s of class %q", field, c.Name), value, want)
	}
	if len(classes) == 0 {
		return valueError("the number of classes", 0, "at least 1")
	}
	names := map[string]bool{}
	for _, c := range classes {
		switch {
		case names[c.Name]:
			return valueError("the name of a class", c.Name, "one that no other class has")
		case !(c.Weight >= 0) || math.IsInf(c.Weight, 1):
			return bad(c, "Weight", c.Weight, "a positive number, or 0 for the default of 1")
		case c.MaxAge < 0:
			return bad(c, "MaxAge", c.MaxAge, "0 or more")
		case c.Limit != nil && isnil.Value(c.Limit):
			return bad(c, "Limit", nil, "a Reserver, or nil without a type")
		case c.MaxQueue < 0:
			return bad(c, "MaxQueue", c.MaxQueue, "0 or more requests")
		case c.Priority == math.MaxInt:
			return bad(c, "Priority", c.Priority, "less")
		}
		names[c.Name] = true
	}
	return nil
}

// A FullError reports a request that was refused because MaxQueue requests of its class wait.
type FullError struct {
	Class    string
	MaxQueue int // so many may wait
}

func (e *FullError) Error() string {
	return fmt.Sprintf("fair: %d requests of class %q wait already, as many as may", e.MaxQueue, e.Class)
}

func (q *Queue) reserve(ctx context.Context, name, tenant string, n int, maxWait time.Duration) (*queue.Place, error) {
	if n < 1 {
		return nil, valueError("permits", n, "at least 1")
	}
	class := 0
	if _, unnamed := q.byName[""]; name != "" || unnamed {
		var ok bool
		if class, ok = q.byName[name]; !ok {
			return nil, valueError("the class", name, "one of "+q.names())
		}
	}
	p := &queue.Place{Permits: n, Options: q.asks[class], Rank: queue.RankOf(ctx), Class: class, Weight: 1}
	if q.tenants {
		if p.Tenant = tenant; q.weight != nil {
			p.Weight = q.weight(tenant)
		}
	}
	if !(p.Weight > 0) || math.IsInf(p.Weight, 1) {
		return nil, valueError(fmt.Sprintf("the weight of tenant %q", tenant), p.Weight, "a positive number")
	}
	return p, limit.Named(q.queue.Enter(ctx, p, maxWait), p.LimitName)
}

func (q *Queue) names() string {
	var names []string
	for _, c := range q.classes {
		names = append(names, fmt.Sprintf("%q", c.Name))
	}
	return strings.Join(names, ", ")
}

// ReserveWithin reserves n permits (at least 1) for the context's class and tenant: see [With]. Without a class it is
// the class named "", or else the first.
//
// The reservation's At and Delay are a forecast, which a more urgent request makes later: use Wait.
//
// If the forecast is later than maxWait or the context's deadline, the request takes nothing and gets a
// *[reserve.WaitError] at once; if it certainly can't go in time later, from Wait. A maxWait of 0 succeeds if the
// permits are free now, and no request of that priority or a higher one waits.
func (q *Queue) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	class, tenant := From(ctx)
	return q.reservation(ctx, class, tenant, n, maxWait)
}

func (q *Queue) reservation(
	ctx context.Context, class, tenant string, n int, maxWait time.Duration,
) (reserve.Reservation, error) {
	p, err := q.reserve(ctx, class, tenant, n, maxWait)
	if err != nil {
		return reserve.Reservation{}, err
	}
	return p.Reservation(), nil
}

// Acquire waits for n permits (at least 1) for the context's class and tenant, and returns how long. For these and
// errors see [Queue.ReserveWithin].
func (q *Queue) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	class, tenant := From(ctx)
	p, err := q.reserve(ctx, class, tenant, n, reserve.Forever)
	if err != nil {
		return 0, err
	}
	err = limit.Named(p.Wait(ctx), p.LimitName)
	return p.Waited(), err
}

// Rate returns the limit's permits per second; 0: unknown.
func (q *Queue) Rate() float64 {
	return q.limit.Rate()
}

func (q *Queue) answers(door reserve.Reserver) limit.Limit { return limit.Behind(door, q.limit) }

var _ = limit.For(func(q *Queue) limit.Limit { return q.answers(q) })
var _ = limit.For(func(d door) limit.Limit { return d.q.answers(d) })

// Class returns a Reserver for a class and the context's tenant. For an unknown class, ReserveWithin returns a
// *[reserve.ValueError].
func (q *Queue) Class(name string) reserve.Reserver { return door{q: q, class: name} }

// Tenant returns a Reserver for a class and a tenant, with any context.
func (q *Queue) Tenant(class, tenant string) reserve.Reserver {
	return door{q: q, class: class, tenant: tenant, own: true}
}

type door struct {
	q             *Queue
	class, tenant string
	own           bool // the tenant is this one, not the context's
}

func (d door) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	tenant := d.tenant
	if !d.own {
		_, tenant = From(ctx)
	}
	return d.q.reservation(ctx, d.class, tenant, n, maxWait)
}

func (d door) Rate() float64 { return d.q.Rate() }

type contextKey struct{}

type names struct{ class, tenant string }

// With returns a context for requests of a class and a tenant.
func With(ctx context.Context, class, tenant string) context.Context {
	return context.WithValue(ctx, contextKey{}, names{class, tenant})
}

// From returns the class and the tenant of [With], or "".
func From(ctx context.Context) (class, tenant string) {
	n, _ := ctx.Value(contextKey{}).(names)
	return n.class, n.tenant
}
