package bykey

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table against Go's map, with hashes so bad that most of them collide.
func TestTableIsAMap(t *testing.T) {
	for _, hashes := range []uint32{1, 7, 1 << 8, 1<<32 - 1} {
		random := rand.New(rand.NewPCG(1, uint64(hashes)))
		hash := func(key int) uint32 { return uint32(key) * 2654435761 % hashes }
		var table table[int]
		model := map[int]bool{}
		for step := range 20_000 {
			key := random.IntN(300)
			e := table.find(hash(key), key)
			require.Equal(t, model[key], e != nil)
			growing := step/2000%2 == 0
			switch {
			case e == nil && (growing || random.IntN(4) == 0):
				e = table.insert(entry[int]{key: key, hash: hash(key)})
				require.Equal(t, key, e.key)
				model[key] = true
			case e != nil && (!growing || random.IntN(4) == 0):
				for i := range table.entries {
					if &table.entries[i] == e {
						table.remove(i)
						break
					}
				}
				delete(model, key)
			}
			require.Len(t, table.entries, len(model))
			require.LessOrEqual(t, 4*len(table.entries), 3*max(len(table.index), smallestIndex))
		}
		for len(table.entries) > 0 {
			table.remove(random.IntN(len(table.entries)))
			require.LessOrEqual(t, len(table.index), max(smallestIndex, 8*len(table.entries)))
			require.LessOrEqual(t, cap(table.entries), max(8, 4*len(table.entries)))
		}
		require.Nil(t, table.index)
		require.Nil(t, table.entries)
	}
}
