package limitertest

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Vector returns the bytes that reserve/FORMATS.md shows under a name, on a line "name: hex".
func Vector(t *testing.T, name string) []byte {
	t.Helper()
	page := "FORMATS.md"
	for range 3 {
		if _, err := os.Stat(page); err == nil {
			break
		}
		page = filepath.Join("..", page)
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if digits, ok := strings.CutPrefix(line, name+": "); ok {
			b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
			require.NoError(t, err)
			return b
		}
	}
	t.Fatalf("%s has no vector %q", page, name)
	return nil
}
