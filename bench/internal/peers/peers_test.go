package peers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A limiter that answers otherwise would be measured at something else than the others.
func TestEveryCallDoesWhatItShould(t *testing.T) {
	for name, ops := range map[string][]Op{
		"TryAcquire": TryAcquire(), "TryRefused": TryRefused(),
		"Reserve": Reserve(), "ReserveInQueue": ReserveInQueue(), "ReserveAndCancel": ReserveAndCancel(),
	} {
		for _, op := range ops {
			require.Zero(t, op.Start()(10_000), "%s, %s", name, op.Limiter)
		}
	}
}
