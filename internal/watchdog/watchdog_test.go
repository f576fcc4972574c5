package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStart(t *testing.T) {
	for name, takes := range map[string]time.Duration{"ends": limit - 1, "hangs": limit + 1} {
		said := ""
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start(t, func(message string) { said = message })
				time.Sleep(takes)
			})
		})
		if name == "ends" {
			require.Empty(t, said)
			continue
		}
		require.Equal(t, "TestStart/hangs hangs: a goroutine that it waits for has not ended in 2m0s", said)
	}
}
