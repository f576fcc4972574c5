package shared_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

func permits(n float64, opts ...reserve.Option) *reserve.Policy {
	return reserve.Must(pace.TokenBucket(1e-6, n, opts...))
}

type opener func(p *reserve.Policy, opts ...shared.Option) (*shared.Keyed, error)

// eachOpener runs a test on Redis and on a store.
func eachOpener(t *testing.T, test func(t *testing.T, open opener, one *shared.Limiter)) {
	patient := shared.WithTimeout(10 * time.Second)
	eachServer(t, func(t *testing.T, c *redis.Client) {
		test(t, func(p *reserve.Policy, opts ...shared.Option) (*shared.Keyed, error) {
			return shared.NewKeyed(c, p, append(opts, patient)...)
		}, newShared(t, place{Client: c}, "api", permits(1000), patient))
	})
	t.Run("memory", func(t *testing.T) {
		store := shared.Memory()
		test(t, func(p *reserve.Policy, opts ...shared.Option) (*shared.Keyed, error) {
			return shared.NewKeyedIn(store, p, opts...)
		}, reserve.Must(shared.NewIn(store, "api", permits(1000))))
	})
}

func granted(t *testing.T, k *shared.Keyed, key string, tries int) (n int) {
	for range tries {
		ok, err := k.TryAcquire(t.Context(), key, 1)
		require.NoError(t, err)
		if ok {
			n++
		}
	}
	return n
}

// What a client calls itself is neither a limiter's name nor another Keyed's key.
func TestNamesDoNotMeet(t *testing.T) {
	eachOpener(t, func(t *testing.T, open opener, api *shared.Limiter) {
		reads := reserve.Must(open(permits(100, reserve.WithName("reads"))))
		writes := reserve.Must(open(permits(5, reserve.WithName("writes"))))
		five, hundred := reserve.Must(open(permits(5))), reserve.Must(open(permits(100)))
		for _, user := range []string{
			"api", "alice", "", "writes", "writes:{alice}", "}", "{api}", "reads:{", "pace:{api}", strings.Repeat("long", 100),
		} {
			require.Equal(t, 100, granted(t, reads, user, 110), user)
			require.Equal(t, 5, granted(t, writes, user, 10), user)
			require.Equal(t, 5, granted(t, five, user, 10), user)
			require.Equal(t, 100, granted(t, hundred, user, 110), user)
		}
		left, err := api.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 1000, left, 1e-3)
	})
}

// Processes with one name share the limits of a key, also during a deploy of another policy.
func TestOneNameIsOneLimit(t *testing.T) {
	eachOpener(t, func(t *testing.T, open opener, _ *shared.Limiter) {
		old, now := reserve.Must(open(permits(10, reserve.WithName("users")))), reserve.Must(open(permits(100, reserve.WithName("users"))))
		require.Equal(t, 4, granted(t, old, "ann", 4))
		require.Equal(t, 6, granted(t, now, "ann", 100))
		long := strings.Repeat("x", 500_000)
		require.Equal(t, 10, granted(t, old, long, 20))
		require.Zero(t, granted(t, now, long, 20))
		require.Zero(t, granted(t, old, long, 20))
	})
}

// The name of a long key is what another client may call itself.
func TestLongKeyIsNotItsHash(t *testing.T) {
	s := &keys{Store: shared.Memory()}
	k := reserve.Must(shared.NewKeyedIn(s, permits(5, reserve.WithName("users"))))
	require.Equal(t, 5, granted(t, k, strings.Repeat("x", 1000), 10))
	require.Equal(t, 5, granted(t, k, s.last, 10))
}

// keys remembers the last key, and fails if it shall.
type keys struct {
	shared.Store
	mu    sync.Mutex
	last  string
	fails error
}

func (s *keys) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = key; s.fails != nil {
		return s.fails
	}
	return s.Store.Update(ctx, key, f)
}

// A secret or a long key reaches neither the store nor an error.
func TestKeysAreHashed(t *testing.T) {
	for _, secret := range []string{"sk-live-0123456789", strings.Repeat("sk-live-", 60_000)} {
		for _, fails := range []error{nil, errors.New("away"), &shared.ConfigError{Key: "k", Err: errors.New("denied")}} {
			s := &keys{Store: shared.Memory(), fails: fails}
			k := reserve.Must(shared.NewKeyedIn(s, permits(5, reserve.WithName("users"))))
			_, err := k.TryAcquire(t.Context(), secret, 1)
			if fails != nil {
				require.Error(t, err)
				require.NotContains(t, err.Error(), "sk-live")
			}
			require.NotContains(t, s.last, "sk-live")
			require.LessOrEqual(t, len(s.last), 40)
			require.True(t, strings.HasPrefix(s.last, "pace:users:{"))
		}
	}
}

func TestNameWithBraces(t *testing.T) {
	var value *reserve.ValueError
	for _, name := range []string{"{users}", "a}"} {
		_, err := shared.NewKeyedIn(shared.Memory(), permits(1, reserve.WithName(name)))
		require.ErrorAs(t, err, &value)
	}
}
