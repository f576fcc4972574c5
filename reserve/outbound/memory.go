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

func (m *memory[V]) get(key any) (v V, ok bool) { return m.use(key, nil, false) }

func (m *memory[V]) set(key any, v V) { m.use(key, &v, true) }

// getOr sets a key without a value to a fresh value, which it makes under no lock.
func (m *memory[V]) getOr(key any, fresh func() V) V {
	v, ok := m.get(key)
	if !ok {
		v = fresh()
		v, _ = m.use(key, &v, false)
	}
	return v
}

// use returns a key's value. A fresh value, if not nil, is set if there is none, or instead of it.
func (m *memory[V]) use(key any, fresh *V, instead bool) (v V, ok bool) {
	m.mu.Lock()
	v, young := m.young[key]
	if ok = young; !young {
		v, ok = m.old[key]
		delete(m.old, key)
	}
	if fresh != nil && (instead || !ok) {
		v, ok, instead = *fresh, true, true
	}
	var dropped map[any]V
	if ok && !young && len(m.young) >= maxKeys/2 {
		dropped, m.old, m.young = m.old, m.young, nil
	}
	if m.young == nil {
		m.young = map[any]V{}
	}
	if ok && (instead || !young) {
		m.young[key] = v
	}
	m.mu.Unlock()
	if m.forget != nil {
		for _, v := range dropped {
			m.forget(v)
		}
	}
	return v, ok
}
