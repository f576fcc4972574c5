package bykey

// A table is a hash table that shrinks, and whose entries lie in a row, for sweeps. The index has open addressing with
// linear probing (Knuth's algorithm 6.4 L, and R to delete). A map[K]uint32 of positions takes 127 bytes a key of a
// million instead of 80, and TryAcquire of 1,000 keys 249 ns instead of 180. The zero value is an empty table.
type table[K comparable] struct {
	entries []entry[K]
	// index has a power of two of slots; 0 is free. The low bits, as many as a position has, are 1 + the entry's
	// position; the others are its hash's, so that few wrong entries are looked at.
	index []uint32
}

type entry[K comparable] struct {
	key K
	state
	hash  uint32
	asked uint16 // when the policy was asked for, in ticks
}

const smallestIndex = 8

func (t *table[K]) find(hash uint32, key K) *entry[K] {
	if i := t.at(hash, key); i >= 0 {
		return &t.entries[i]
	}
	return nil
}

func (t *table[K]) at(hash uint32, key K) int {
	if len(t.index) == 0 {
		return -1
	}
	mask := uint32(len(t.index) - 1)
	for at := hash & mask; t.index[at] != 0; at = (at + 1) & mask {
		if slot := t.index[at]; (slot^hash)&^mask == 0 {
			if i := int(slot&mask - 1); t.entries[i].key == key {
				return i
			}
		}
	}
	return -1
}

func (t *table[K]) insert(e entry[K]) *entry[K] {
	// At three quarters, two or three slots are looked at.
	if len(t.entries) >= len(t.index)/4*3 {
		t.reindex(max(smallestIndex, 2*len(t.index)))
	}
	t.entries = append(t.entries, e)
	t.point(len(t.entries) - 1)
	return &t.entries[len(t.entries)-1]
}

// remove puts the last entry at the removed one's position.
func (t *table[K]) remove(position int) {
	t.free(t.slotOf(position))
	last := len(t.entries) - 1
	if position != last {
		slot := t.slotOf(last)
		t.entries[position] = t.entries[last]
		t.index[slot] += uint32(position) - uint32(last)
	}
	t.entries[last] = entry[K]{} // for the garbage collector
	t.entries = t.entries[:last]
	t.shrink()
}

func (t *table[K]) slotOf(position int) uint32 {
	mask := uint32(len(t.index) - 1)
	at := t.entries[position].hash & mask
	for t.index[at]&mask != uint32(position)+1 {
		at = (at + 1) & mask
	}
	return at
}

func (t *table[K]) free(gap uint32) {
	mask := uint32(len(t.index) - 1)
	for at := (gap + 1) & mask; t.index[at] != 0; at = (at + 1) & mask {
		home := t.entries[t.index[at]&mask-1].hash & mask
		if (at-home)&mask >= (at-gap)&mask {
			t.index[gap] = t.index[at]
			gap = at
		}
	}
	t.index[gap] = 0
}

func (t *table[K]) point(position int) {
	mask := uint32(len(t.index) - 1)
	hash := t.entries[position].hash
	at := hash & mask
	for t.index[at] != 0 {
		at = (at + 1) & mask
	}
	t.index[at] = hash&^mask | uint32(position) + 1
}

func (t *table[K]) reindex(slots int) {
	t.index = make([]uint32, slots)
	for i := range t.entries {
		t.point(i)
	}
}

// shrink gives memory back once three quarters are free, and keeps twice what is needed.
func (t *table[K]) shrink() {
	n := len(t.entries)
	if n == 0 {
		*t = table[K]{}
		return
	}
	if 4*n <= cap(t.entries) {
		t.entries = append(make([]entry[K], 0, 2*n), t.entries...)
	}
	if len(t.index) > smallestIndex && 8*n <= len(t.index) {
		t.reindex(len(t.index) / 2)
	}
}
