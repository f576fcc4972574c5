package llm

import (
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/outbound"
)

// gate bounds the calls that are out. Until a response tells what is not known, that is one.
type gate struct {
	*queue.Places

	mu sync.Mutex
	n  int
}

func newGate(n int) gate { return gate{Places: queue.NewPlaces(n), n: n} }

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resize(math.MaxInt)
}

// resize must be called with the gate locked.
func (g *gate) resize(n int) {
	g.n = n
	g.Resize(n)
}

// patience is how long others wait for one call: a server may never answer it.
const patience = 10 * time.Second

// pass lets another call go after patience, if this one is still out and closed holds.
func (g *gate) pass(c *call, closed func(*call) bool) {
	if !closed(c) {
		return
	}
	c.account.of.clock.AfterFunc(patience, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !c.left.Load() && closed(c) {
			g.resize(g.n + 1)
		}
	})
}

func (c *call) unheard() bool { return !c.account.known.Load() }

// unseen reports whether no response has told what such calls read.
func (c *call) unseen() bool { return c.class.kind.state && c.account.of.settles && !c.class.isKnown() }

// gates are the places in flight of a call's key and, while its input can't be estimated, of its class.
func gates() []outbound.Option {
	gateOf := func(of func(*call) *gate, cost func(*call) bool) outbound.Option {
		return outbound.WithLimit(outbound.Limit{
			Keyed: func(r *http.Request) (any, reserve.Reserver) {
				g := of(callOf(r))
				return g, g.Places
			},
			Cost: func(r *http.Request) int {
				if c := callOf(r); c != nil && cost(c) {
					return 1
				}
				return 0
			},
		})
	}
	return []outbound.Option{
		gateOf(func(c *call) *gate { return &c.account.flight.gate }, func(*call) bool { return true }),
		gateOf(func(c *call) *gate { return &c.class.first }, (*call).unseen),
	}
}
