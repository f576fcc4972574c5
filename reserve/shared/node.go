package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve/shared/internal/pipeline"
	"github.com/nextfree/pace/reserve/shared/internal/within"
)

// A node is what a process knows of one server.
type node struct {
	name    string // of the store, for errors
	keeper  keeper
	circuit circuit
	clock   serverClock
	calls   within.Calls
	dials   bool // its calls make connections
}

// decide ends with the context. If over is false, the keeper's call goes on, and the order is its own. While the server
// does not answer, the call has longer: so a connection to a server far away can be made.
func (n *node) decide(ctx context.Context, key string, o *order, timeout time.Duration) (over bool, err error) {
	longer, cancel := ctx, func() {}
	if n.dials && (n.circuit.answered.Load() == 0 || n.circuit.troubled.Load()) {
		longer, cancel = context.WithTimeout(context.WithoutCancel(ctx), 4*timeout)
	}
	_, over, err = within.Do(ctx, &n.calls, func() (struct{}, error) {
		defer cancel()
		err := n.keeper.decide(longer, key, o)
		o.back = o.now() // before the caller runs, which may take a while
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, within.ErrHang):
		cancel()
		err = fmt.Errorf("%w: %w", ErrNotWritten, err)
	case errors.Is(err, within.ErrAborted):
		err = errAborted
	}
	return over, err
}

type nodes struct {
	open   func() *node
	reload func(context.Context)   // looks where servers are now; nil: they don't move
	locate func(key string) string // names the server of a key; nil: there is one
	single *node
	byName sync.Map // of *node
}

type opener func(*settings) (*nodes, error)

func ofScripter(client Scripter, pipelined bool) opener {
	return func(s *settings) (*nodes, error) {
		if isnil.Value(client) {
			return nil, valueError("client", nil, "a client")
		}
		if c, ok := client.(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				return nil, err
			}
		}
		n := &nodes{open: func() *node {
			k := &scriptKeeper{Scripter: client, settings: s}
			if _, ok := client.(pipeline.Client); ok && pipelined {
				k.many.send, k.many.now = k.sendMany, s.now
			}
			return s.newNode("Redis", k, true)
		}}
		if c, ok := client.(interface{ Reload(context.Context) }); ok {
			n.reload = c.Reload
		}
		if c, ok := client.(interface{ Node(key string) string }); ok {
			n.locate = c.Node
		}
		n.single = n.open()
		return n, nil
	}
}

func (s *settings) newNode(name string, k keeper, dials bool) *node {
	return &node{name: name, keeper: k, dials: dials, circuit: circuit{epoch: s.begin.UnixNano()}}
}

func (n *nodes) of(key string) *node {
	if n.locate == nil {
		return n.single
	}
	name := n.locate(key)
	if name == "" {
		return n.single
	}
	found, ok := n.byName.Load(name)
	if !ok {
		found, _ = n.byName.LoadOrStore(name, n.open())
	}
	return found.(*node)
}

func (n *nodes) anyOpen() bool {
	open := n.single.circuit.isOpen()
	n.byName.Range(func(_, other any) bool {
		open = open || other.(*node).circuit.isOpen()
		return !open
	})
	return open
}
