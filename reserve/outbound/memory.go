package outbound

import "sync"

// A memory holds what is known of keys, of maxKeys at most: if it is full, the half
// that was not asked for lately is forgotten. It needs no goroutine and no time.
type memory[V any] struct {
	forget func(V) // called under no lock; may be nil

	mu         sync.Mutex
	young, old map[any]V
}

// maxKeys bounds a memory. An adaptive key needs about 600 bytes for its rate and 130 for when it
// was accepted: 48 MB at most.
const maxKeys = 1 << 16

// get returns what is known of a key.
func (m *memory[V]) get(key any) (v V, ok bool) {
	m.mu.Lock()
	v, ok, dropped := m.find(key)
	m.mu.Unlock()
	m.drop(dropped)
	return v, ok
}

// getOr returns what is known of a key, or else makes it known.
func (m *memory[V]) getOr(key any, fresh V) V {
	m.mu.Lock()
	v, ok, dropped := m.find(key)
	if !ok {
		v, dropped = fresh, m.put(key, fresh)
	}
	m.mu.Unlock()
	m.drop(dropped)
	return v
}

// drop forgets, under no lock.
func (m *memory[V]) drop(dropped map[any]V) {
	if m.forget != nil {
		for _, v := range dropped {
			m.forget(v)
		}
	}
}

func (m *memory[V]) find(key any) (v V, ok bool, dropped map[any]V) {
	if v, ok = m.young[key]; ok {
		return v, true, nil
	}
	if v, ok = m.old[key]; ok {
		delete(m.old, key)
		dropped = m.put(key, v)
	}
	return v, ok, dropped
}

// put remembers a key, and returns those that are forgotten for it.
func (m *memory[V]) put(key any, v V) (dropped map[any]V) {
	if len(m.young) >= maxKeys/2 {
		dropped, m.old, m.young = m.old, m.young, nil
	}
	if m.young == nil {
		m.young = map[any]V{}
	}
	m.young[key] = v
	return dropped
}
