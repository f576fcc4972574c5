package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

type coded string

func (c coded) Error() string    { return "SQLSTATE " + string(c) }
func (c coded) SQLState() string { return string(c) }

// What a pooler does to prepared statements is no mistake of the configuration: a fallback may hide it.
func TestWrong(t *testing.T) {
	for state, want := range map[string]bool{
		"42P01": true, "42501": true, "28P01": true, "3D000": true, "3F000": true,
		"42P05": false, "26000": false, "40001": false, "57P01": false,
	} {
		require.Equal(t, want, wrong(fmt.Errorf("pgx: %w", coded(state))), state)
	}
}
