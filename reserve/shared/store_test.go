package shared_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
)

// A limiter in memory is what one in Redis is, for a program's tests: shared by name.
func TestMemory(t *testing.T) {
	store := shared.Memory()
	policy := reserve.Must(policies["capacity"](1))
	one := reserve.Must(shared.NewIn(store, "api", policy))
	other := reserve.Must(shared.NewIn(store, "api", policy))
	granted := 0
	for range 10 {
		for _, l := range []*shared.Limiter{one, other} {
			ok, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			if ok {
				granted++
			}
		}
	}
	require.Equal(t, 8, granted, "7.5 stored, and one that is paid for later")
	k := reserve.Must(shared.NewKeyedIn(store, policy, shared.WithTimeout(time.Second)))
	for _, key := range []string{"api", "other"} { // the key is not the name
		ok, err := k.TryAcquire(t.Context(), key, 1)
		require.NoError(t, err)
		require.True(t, ok)
	}

	_, err := shared.NewIn(nil, "api", policy)
	require.EqualError(t, err, "shared: store is <nil>; want a store")
	_, err = shared.NewKeyedIn(nil, policy)
	require.EqualError(t, err, "shared: store is <nil>; want a store")
}

// The suite of all stores.
func TestMemoryIsAStore(t *testing.T) {
	stores := map[*testing.T]shared.Store{}
	storetest.Run(t, func(t *testing.T) shared.Store {
		if stores[t] == nil {
			stores[t] = shared.Memory()
		}
		return stores[t]
	}, 200)
}
