package recent

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory is bounded, however many keys there are, and what is in use is not forgotten.
func TestBounded(t *testing.T) {
	forgotten := 0
	m := Map[int, int]{Forget: func(int) { forgotten++ }}
	for i := range 5 * Most {
		m.Set(i, i)
		if v, ok := m.Get(0); v != 0 || !ok {
			t.Fatal("what is in use was forgotten")
		}
		if m.Len() > Most {
			t.Fatal("too many")
		}
	}
	require.Equal(t, 5*Most-m.Len(), forgotten)
	_, ok := m.Get(1)
	require.False(t, ok)
}

// Callers that ask for a fresh value at once have the same.
func TestOneFresh(t *testing.T) {
	var m Map[string, *int]
	var all sync.WaitGroup
	got := make([]*int, 20)
	for i := range got {
		all.Go(func() { got[i] = m.GetOr("a", func() *int { return new(int) }) })
	}
	all.Wait()
	for _, p := range got {
		require.Same(t, got[0], p)
	}
	m.Set("a", nil)
	v, ok := m.Get("a")
	require.True(t, ok)
	require.Nil(t, v)
}
