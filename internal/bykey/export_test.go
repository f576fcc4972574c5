package bykey

// Sweep looks at all entries.
func (k *Limiters[K]) Sweep() {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		k.sweep(s, len(s.entries), false)
		s.mu.Unlock()
	}
}

// Promoted counts the keys that are whole limiters.
func (k *Limiters[K]) Promoted() (n int) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		for j := range s.entries {
			if s.entries[j].whole != nil {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// Counted counts the entries, which Len should agree with, and the policy calls under way.
func (k *Limiters[K]) Counted() (entries, asks int) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		entries += len(s.entries)
		asks += len(s.asks)
		s.mu.Unlock()
	}
	return entries, asks
}

// Has reports whether the key is remembered.
func (k *Limiters[K]) Has(key K) bool {
	s, hash := k.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(hash, key) != nil
}
