package file_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/file"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
)

// The suite of all stores.
func TestSuite(t *testing.T) {
	dirs := map[*testing.T]string{}
	storetest.Run(t, func(t *testing.T) shared.Store {
		if dirs[t] == "" {
			dirs[t] = t.TempDir()
		}
		s, err := file.Open(dirs[t])
		require.NoError(t, err)
		return s
	}, 0)
}
