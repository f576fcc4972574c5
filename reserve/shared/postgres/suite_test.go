//go:build unix

package postgres_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
	"github.com/nextfree/pace/reserve/shared/postgres"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if common != nil {
			common.remove()
		}
		os.Exit(code)
	}))
}

// The suite of all stores. PACE_SEQUENCES says how many random sequences it has.
func TestSuite(t *testing.T) {
	s := start(t)
	sequences, _ := strconv.Atoi(os.Getenv("PACE_SEQUENCES"))
	tables := map[*testing.T]string{}
	storetest.Run(t, func(t *testing.T) shared.Store {
		db := s.connect(t)
		if tables[t] == "" {
			tables[t] = fmt.Sprint("limits_", len(tables))
			require.NoError(t, postgres.Create(t.Context(), db, tables[t]))
		}
		store, err := postgres.Open(db, tables[t])
		require.NoError(t, err)
		return store
	}, sequences)
}
