package outbound

import "sync"

// A memory is a map of at most maxKeys keys. When it is full it forgets the half that was used less recently.
type memory[V any] struct {
	forget func(V) // called under no lock; may be nil

	mu         sync.Mutex
	young, old map[any]V
}

// maxKeys bounds a memory. An adaptive key needs about 930 bytes: 61 MB at most.
const maxKeys = 1 << 16

func (m *memory[V]) get(key any) (v V, ok bool) {
	m.mu.Lock()
	v, ok, dropped := m.find(key)
	m.mu.Unlock()
	m.drop(dropped)
	return v, ok
}

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

func (m *memory[V]) set(key any, v V) {
	m.mu.Lock()
	_, ok, dropped := m.find(key)
	if ok {
		m.young[key] = v
	} else {
		dropped = m.put(key, v)
	}
	m.mu.Unlock()
	m.drop(dropped)
}

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

// put sets a key's value, and returns the forgotten ones.
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
