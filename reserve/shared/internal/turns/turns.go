// Package turns orders goroutines that want the same key, first come, first served.
package turns

import (
	"context"
	"sync"
)

// Turns are the turns of all keys. The zero Turns is ready to use, concurrently.
type Turns struct {
	mu   sync.Mutex
	keys map[string]*turn
}

type turn struct {
	free  chan struct{} // holds one thing while no goroutine has the turn
	users int           // that have the turn or wait for it
}

// Take waits for the turn of a key, which ends with leave. It returns the context's cause if that ends first.
func (t *Turns) Take(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	k := t.keys[key]
	if k == nil {
		if t.keys == nil {
			t.keys = map[string]*turn{}
		}
		k = &turn{free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		t.keys[key] = k
	}
	k.users++
	t.mu.Unlock()
	select {
	case <-k.free:
		return func() { k.free <- struct{}{}; t.forget(key, k) }, nil
	case <-ctx.Done():
		t.forget(key, k)
		return nil, context.Cause(ctx)
	}
}

// forget ends a use, and removes an unused key.
func (t *Turns) forget(key string, k *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(t.keys, key)
	}
}
