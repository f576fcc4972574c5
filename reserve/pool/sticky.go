package pool

import "sync"

// generation is how many keys a generation remembers.
const generation = 1 << 15

// keys remember which member served a key last, in two generations.
type keys struct {
	mu       sync.Mutex
	now, old map[string]int
}

func (k *keys) last(key string) int {
	if key == "" {
		return -1
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if member, ok := k.now[key]; ok {
		return member
	}
	if member, ok := k.old[key]; ok {
		return member
	}
	return -1
}

func (k *keys) served(key string, member int) {
	if key == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil || len(k.now) >= generation {
		k.now, k.old = map[string]int{}, k.now
	}
	k.now[key] = member
}
