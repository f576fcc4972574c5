package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

const (
	processes = 4                     // with a client and a limiter each
	hurry     = 20 * time.Millisecond // the deadline of callers that have less time than the timeout

	before = 400 * time.Millisecond
	during = 1200 * time.Millisecond
	after  = 1800 * time.Millisecond
)

// A mode is a way of failing.
type mode struct {
	name   string
	option shared.Option
}

var modes = []mode{
	{"FailClosed", shared.FailClosed()},
	{"FailOpen", shared.FailOpen()},
	{"Local(1/4)", shared.Local(1.0 / processes)},
}

// What the limiters are.
const (
	rate    = 1000. // permits a second of a key
	store   = 100.  // permits
	timeout = 50 * time.Millisecond
)

// A group is the processes that share a key and a way of failing.
type group struct {
	mode
	clients  []redis.UniversalClient
	limiters []*shared.Limiter

	mu    sync.Mutex
	calls []call
	odd   []error // errors that no caller should see
	hung  int
}

// A call is what a caller saw. A permit that it was granted became its own between from and end.
type call struct {
	begin, from, end time.Time
	beyond           time.Duration // how much longer than the timeout, or than its own deadline, it took
	granted, failed  bool
}

// key is the group's key in Redis.
func (m mode) key() string { return "pace:{" + m.name + "}" }

func newGroup(m mode, w *world) *group {
	g := &group{mode: m}
	policy := reserve.Must(pace.Bursty(rate, pace.WithCapacity(store)))
	for range processes {
		c := w.client()
		g.clients = append(g.clients, c)
		l := reserve.Must(shared.New(goredis.Client(c), m.name, policy, m.option, shared.WithTimeout(timeout)))
		g.limiters = append(g.limiters, l)
	}
	return g
}

// run calls until stop is closed, and then a little longer than a call may take.
func (g *group) run(stop <-chan struct{}) {
	returned := make(chan struct{})
	callers := 0
	start := func(process int, pause time.Duration, do func(ctx context.Context, l *shared.Limiter, c *call) error) {
		callers++
		go func() {
			defer func() { returned <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				case <-time.After(pause):
					g.once(g.limiters[process], do)
				}
			}
		}()
	}
	for process := range processes {
		for _, acquire := range waiting {
			start(process, time.Millisecond, acquire)
		}
		start(process, 5*time.Millisecond, tryAcquire)
		start(process, 10*time.Millisecond, look)
	}
	<-stop
	late := time.After(10 * time.Second)
	for range callers {
		select {
		case <-returned:
		case <-late:
			g.hung++
			late = time.After(0)
		}
	}
	if g.hung > 0 { // they still use the clients
		return
	}
	for _, c := range g.clients {
		_ = c.Close()
	}
}

// once makes one call.
func (g *group) once(l *shared.Limiter, do func(ctx context.Context, l *shared.Limiter, c *call) error) {
	c := call{begin: time.Now()}
	c.from = c.begin
	err := do(context.Background(), l, &c)
	c.end = time.Now()
	c.beyond += c.end.Sub(c.from) - timeout
	var unavailable *shared.UnavailableError
	var config *shared.ConfigError
	var wait *reserve.WaitError
	c.failed = errors.As(err, &unavailable) || errors.As(err, &config)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, c)
	if err != nil && !c.failed && !errors.As(err, &wait) && !errors.Is(err, context.DeadlineExceeded) {
		g.odd = append(g.odd, err)
	}
}

// What callers do. The time for which they wait for permits is not the call's.

// waiting are the callers of a process that wait for permits.
var waiting = []func(ctx context.Context, l *shared.Limiter, c *call) error{acquire, acquire, acquireInAHurry}

func acquire(ctx context.Context, l *shared.Limiter, c *call) error {
	waited, err := l.Acquire(ctx, 1)
	c.from, c.granted = c.from.Add(waited), err == nil
	return err
}

func acquireInAHurry(ctx context.Context, l *shared.Limiter, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, hurry)
	defer cancel()
	c.beyond = timeout - hurry
	return acquire(ctx, l, c)
}

func tryAcquire(ctx context.Context, l *shared.Limiter, c *call) (err error) {
	c.granted, err = l.TryAcquire(ctx, 1)
	return err
}

func look(ctx context.Context, l *shared.Limiter, _ *call) error {
	_, err := l.Stored(ctx)
	return err
}
