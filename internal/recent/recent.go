// Package recent remembers what was used recently.
package recent

import "sync"

// Most is how many keys a Map remembers at most.
const Most = 1 << 16

// A Map remembers at most [Most] keys, in two generations. When it is full it forgets the half that was used less
// recently. The zero value is empty. It can be used by several goroutines at once.
type Map[K comparable, V any] struct {
	Forget func(V) // called under no lock; may be nil

	mu         sync.Mutex
	young, old map[K]V
}

func (m *Map[K, V]) Get(key K) (v V, ok bool) { return m.use(key, nil, false) }

func (m *Map[K, V]) Set(key K, v V) { m.use(key, &v, true) }

// GetOr sets a key without a value to a fresh value, which it makes under no lock.
func (m *Map[K, V]) GetOr(key K, fresh func() V) V {
	v, ok := m.Get(key)
	if !ok {
		v = fresh()
		v, _ = m.use(key, &v, false)
	}
	return v
}

// Len returns how many keys it remembers.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.young) + len(m.old)
}

// use returns a key's value. A fresh value, if not nil, is set if there is none, or instead of it.
func (m *Map[K, V]) use(key K, fresh *V, instead bool) (v V, ok bool) {
	m.mu.Lock()
	v, young := m.young[key]
	if ok = young; !young {
		v, ok = m.old[key]
		delete(m.old, key)
	}
	if fresh != nil && (instead || !ok) {
		v, ok, instead = *fresh, true, true
	}
	var dropped map[K]V
	if ok && !young && len(m.young) >= Most/2 {
		dropped, m.old, m.young = m.old, m.young, nil
	}
	if m.young == nil {
		m.young = map[K]V{}
	}
	if ok && (instead || !young) {
		m.young[key] = v
	}
	m.mu.Unlock()
	if m.Forget != nil {
		for _, v := range dropped {
			m.Forget(v)
		}
	}
	return v, ok
}
