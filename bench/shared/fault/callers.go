package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
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

// limits are what the limiters of a world are.
type limits struct {
	rate, store float64 // permits per second of a key, and permits
	timeout     time.Duration
}

// times returns the limits of n processes that know nothing of each other.
func (l limits) times(n int) limits {
	return limits{l.rate * float64(n), l.store * float64(n), l.timeout}
}

// A group is the processes that share a key and a way of failing.
type group struct {
	mode
	limits
	close    []func()
	limiters []*shared.Limiter

	mu    sync.Mutex
	calls []call
	odd   []error // errors that no caller should see
	hung  int
}

// A call is what a caller saw. A permit that it was granted became its own between from and end.
type call struct {
	process          int
	begin, from, end time.Time
	timeout          time.Duration
	beyond           time.Duration // how much longer than the timeout, or than its own deadline, it took
	granted, failed  bool
}

// key is the group's key in Redis.
func (m mode) key() string { return "pace:{" + m.name + "}" }

func newGroup(m mode, w *world) *group {
	g := &group{mode: m, limits: w.limits}
	for range processes {
		policy := reserve.Must(pace.Bursty(g.rate, pace.WithCapacity(g.store)))
		l, closes := w.limiter(m.name, policy, m.option, shared.WithTimeout(g.timeout))
		_, _ = l.Stored(context.Background()) // until its first answer a process knows nothing of the others
		g.close = append(g.close, closes)
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
					g.once(process, do)
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
	for _, closes := range g.close {
		closes()
	}
}

// once makes one call.
func (g *group) once(process int, do func(ctx context.Context, l *shared.Limiter, c *call) error) {
	c := call{process: process, timeout: g.timeout, begin: time.Now()}
	c.from = c.begin
	err := do(context.Background(), g.limiters[process], &c)
	c.end = time.Now()
	c.beyond += c.end.Sub(c.from) - g.timeout
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
	c.beyond = c.timeout - hurry
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
