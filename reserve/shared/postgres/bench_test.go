//go:build unix

package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
	"github.com/nextfree/pace/reserve/shared/postgres"
)

// Decisions of one process, on a server whose disk is told to write (fsync = on).
func BenchmarkAcquire(b *testing.B) {
	s := own(b, "fsync = on")
	db := s.connect(b)
	require.NoError(b, postgres.Create(b.Context(), db, "limits"))
	for name, opts := range map[string][]postgres.Option{"off": nil, "on": {postgres.Durable()}} {
		store, err := postgres.Open(db, "limits", opts...)
		require.NoError(b, err)
		b.Run("synchronous_commit="+name, func(b *testing.B) { storetest.Bench(b, store) })
	}
}

// One hot key of many processes, each with connections of its own.
func BenchmarkCrowd(b *testing.B) {
	s := own(b, "fsync = on")
	require.NoError(b, postgres.Create(b.Context(), s.connect(b), "limits"))
	storetest.Crowd(b, func(b *testing.B) shared.Store {
		store, err := postgres.Open(s.connect(b), "limits")
		require.NoError(b, err)
		return store
	})
}
