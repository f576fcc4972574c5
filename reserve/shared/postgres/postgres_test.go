package postgres_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared/postgres"
)

func TestBadArguments(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, name := range []string{"", "Limits", "a.b.c", `a"; DROP TABLE b; --`, "a b", ".a", "1a", long} {
		_, err := postgres.Open(nil, name)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value, name)
		require.Contains(t, err.Error(), strconv.Quote(name))
		_, err = postgres.Schema(name)
		require.ErrorAs(t, err, &value, name)
		require.ErrorAs(t, postgres.Create(t.Context(), nil, name), &value, name)
	}
	_, err := postgres.Open(nil, "limits")
	require.EqualError(t, err, "postgres: database is <nil>; want a database")
	text, err := postgres.Schema("a.limits")
	require.NoError(t, err)
	require.Contains(t, text, `"a"."limits"`)
}
