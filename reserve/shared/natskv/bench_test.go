package natskv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
	"github.com/nextfree/pace/reserve/shared/natskv"
)

// Decisions of one process, which has the server in it.
func BenchmarkAcquire(b *testing.B) {
	js := connect(b, start(b, b.TempDir(), nil).ClientURL())
	bucket(b, js, "limits", 0)
	store, err := natskv.Open(js, "limits")
	require.NoError(b, err)
	storetest.Bench(b, store)
}

// One hot key of many processes, each with a connection of its own.
func BenchmarkCrowd(b *testing.B) {
	s := start(b, b.TempDir(), nil)
	bucket(b, connect(b, s.ClientURL()), "limits", 0)
	storetest.Crowd(b, func(b *testing.B) shared.Store {
		store, err := natskv.Open(connect(b, s.ClientURL()), "limits")
		require.NoError(b, err)
		return store
	})
}
