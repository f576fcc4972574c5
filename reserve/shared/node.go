package shared

import (
	"context"
	"sync"

	"github.com/nextfree/pace/internal/isnil"
)

// A node is what a process knows of one server.
type node struct {
	name    string // of the store, for errors
	keeper  keeper
	circuit circuit
	clock   serverClock
}

// nodes are one server, or those of a cluster or a ring.
type nodes struct {
	open   func() *node
	reload func(context.Context)   // looks where servers are now; nil: they don't move
	locate func(key string) string // names the server of a key; nil: there is one
	single *node

	mu     sync.RWMutex
	byName map[string]*node
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
			if _, ok := client.(PipelineScripter); ok && pipelined {
				k.many.send = k.sendMany
			}
			return s.newNode("Redis", k)
		}}
		if c, ok := client.(interface{ Reload(context.Context) }); ok {
			n.reload = c.Reload
		}
		if c, ok := client.(interface{ Node(key string) string }); ok {
			n.locate, n.byName = c.Node, map[string]*node{}
		}
		n.single = n.open()
		return n, nil
	}
}

func (s *settings) newNode(name string, k keeper) *node {
	return &node{name: name, keeper: k, circuit: circuit{epoch: s.begin.UnixNano()}}
}

func (n *nodes) of(key string) *node {
	if n.locate == nil {
		return n.single
	}
	name := n.locate(key)
	if name == "" {
		return n.single
	}
	n.mu.RLock()
	found := n.byName[name]
	n.mu.RUnlock()
	if found != nil {
		return found
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if found = n.byName[name]; found == nil {
		found = n.open()
		n.byName[name] = found
	}
	return found
}

func (n *nodes) all() []*node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := []*node{n.single}
	for _, other := range n.byName {
		list = append(list, other)
	}
	return list
}
