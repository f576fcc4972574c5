package goredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
	"github.com/nextfree/pace/reserve/window"
)

// The suite of all stores.
func TestStore(t *testing.T) {
	s := server.Start(t)
	storetest.Run(t, func(t *testing.T) shared.Store {
		c := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() { c.Close() })
		return goredis.Store(c)
	}, 60)
}

// Windows and calendars work on Redis, for all processes together; and a limiter of the script does not read their keys.
func TestStoreHasWindowsAndCalendars(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		for name, policy := range map[string]*reserve.Policy{
			"window": reserve.Must(window.Policy(7, time.Hour)), "calendar": reserve.Must(calendar.Policy(7, calendar.Every(240*time.Hour))),
		} {
			granted := 0
			for range 3 { // processes
				l := reserve.Must(shared.NewIn(goredis.Store(c), name, policy, patient))
				for range 4 {
					ok, err := l.TryAcquire(t.Context(), 1)
					require.NoError(t, err)
					if ok {
						granted++
					}
				}
			}
			require.Equal(t, 7, granted, name)
			script := newShared(t, c, name, reserve.Must(pace.Bursty(1)), patient)
			var refused *shared.ConfigError
			_, err := script.TryAcquire(t.Context(), 1)
			require.ErrorAs(t, err, &refused)
			require.NoError(t, script.Reset(t.Context()))
			_, err = reserve.Must(shared.NewIn(goredis.Store(c), name, policy, patient)).TryAcquire(t.Context(), 1)
			require.ErrorAs(t, err, &refused)
		}
	})
}

// What the server refuses, or a bad client, is an error of configuration; what arrives too late writes nothing.
func TestStoreErrors(t *testing.T) {
	eachServer(t, func(t *testing.T, c *redis.Client) {
		put := func(ctx context.Context, s shared.Store, wait time.Duration) error {
			return s.Update(ctx, "pace:{key}", func(time.Time, []byte) ([]byte, time.Duration, error) {
				time.Sleep(wait)
				return []byte("value"), time.Hour, nil
			})
		}
		var refused *shared.ConfigError
		require.ErrorAs(t, put(t.Context(), goredis.Store(nil), 0), &refused)
		require.NoError(t, c.LPush(t.Context(), "pace:{list}", 1).Err())
		l := reserve.Must(shared.NewIn(goredis.Store(c), "list", reserve.Must(pace.Bursty(1)), patient, shared.FailOpen()))
		_, err := l.TryAcquire(t.Context(), 1)
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "WRONGTYPE")

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, put(ended, goredis.Store(c), 0), context.Canceled)
		require.Error(t, c.Get(t.Context(), "pace:{key}").Err())

		gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
		defer gone.Close()
		err = put(t.Context(), goredis.Store(gone), 0)
		require.ErrorIs(t, err, shared.ErrNotWritten)
	})
}
