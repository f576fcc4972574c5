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

// gate lets one call through at a time, until its response tells what is not known.
type gate struct {
	places *queue.Places

	mu sync.Mutex
	n  int // how many may be through
}

// patience is how long others wait for one call: a server may never answer it.
const patience = 10 * time.Second

func newGate() *gate { return &gate{places: queue.NewPlaces(1), n: 1} }

func (g *gate) open() {
	if g != nil {
		g.resize(math.MaxInt)
	}
}

func (g *gate) resize(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n = max(g.n, n)
	g.places.Resize(g.n)
}

// pass lets the next call go after patience, if this call is still out.
func (g *gate) pass(c *call) {
	g.mu.Lock()
	n := g.n
	g.mu.Unlock()
	c.account.of.after(patience, func() {
		if !c.left.Load() && n < math.MaxInt {
			g.resize(n + 1)
		}
	})
}

func (c *call) unheard() bool { return !c.account.known.Load() && c.account.first != nil }

// unseen reports whether no response has told what such calls read.
func (c *call) unseen() bool {
	return c.state && c.account.of.settles && c.class.first != nil && !c.class.isKnown()
}

func gateLimit(closed func(*call) bool, of func(*call) *gate) outbound.Limit {
	return outbound.Limit{
		Keyed: func(r *http.Request) (any, reserve.Reserver) {
			g := of(callOf(r))
			return g, g.places
		},
		Cost: func(r *http.Request) int {
			if c := callOf(r); c != nil && closed(c) {
				return 1
			}
			return 0
		},
	}
}

func gates() []outbound.Option {
	return []outbound.Option{
		outbound.WithLimit(gateLimit((*call).unheard, func(c *call) *gate { return c.account.first })),
		outbound.WithLimit(gateLimit((*call).unseen, func(c *call) *gate { return c.class.first })),
	}
}

func (c *call) passes() {
	if c.unheard() {
		c.account.first.pass(c)
	}
	if c.unseen() {
		c.class.first.pass(c)
	}
}
