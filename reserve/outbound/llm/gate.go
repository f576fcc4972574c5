package llm

import (
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// gate bounds the calls that are out. While it is closed, for a response tells what is not known, one may be out. The
// zero gate is open, and counts none.
type gate struct {
	*queue.Places
	closed atomic.Bool

	mu sync.Mutex
	n  int
}

func (g *gate) init(closed bool) {
	g.Places, g.n = queue.NewPlaces(math.MaxInt), math.MaxInt
	g.shut(closed)
}

// shut closes the gate, or opens it: then calls that wait at other deployments look again.
func (g *gate) shut(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed.Swap(closed) == closed:
	case closed:
		g.resize(1)
	default:
		g.resize(math.MaxInt)
	}
}

// resize must be called with the gate locked.
func (g *gate) resize(n int) {
	g.n = n
	g.Resize(n)
}

// patience is how long others wait for one call.
const patience = 10 * time.Second

// pass lets another call go after patience, if this one is still out and nothing was told.
func (g *gate) pass(c *call) {
	if !g.closed.Load() {
		return
	}
	c.account.of.clock.AfterFunc(patience, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !c.left.Load() && g.closed.Load() {
			g.resize(g.n + 1)
		}
	})
}

// gates are the places in flight of a call's key and, while its input can't be estimated, of its class.
func gates() []outbound.Option {
	gateOf := func(of func(*call) *gate, cost func(*call) int) outbound.Option {
		return outbound.WithLimit(outbound.Limit{
			Keyed: func(r *http.Request) (any, reserve.Reserver) {
				g := of(callOf(r))
				return g, g.Places
			},
			Cost: func(r *http.Request) int { return cost(callOf(r)) },
		})
	}
	return []outbound.Option{
		gateOf(func(c *call) *gate { return &c.account.flight.gate }, func(*call) int { return 1 }),
		gateOf(func(c *call) *gate { return &c.class.first }, func(c *call) int {
			if c.class.first.closed.Load() && c.account.countsTokens() {
				return 1
			}
			return 0
		}),
	}
}
