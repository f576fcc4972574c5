package shared

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// Redis's refusals are shown, whatever a limiter does when its store fails: also those of a command in the script.
func TestRefusals(t *testing.T) {
	for text, refused := range map[string]bool{
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                   true,
		"ERR The user executing the script can't run this command or subcommand script: 7b on @user_script:12.":              true,
		"ERR ACL failure in script: User get has no permissions to run the 'get' command script: 50b075 on @user_script:25.": true,
		"WRONGTYPE the value is not the state of a limiter":                                                                  true,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                            false,
		"LOADING Redis is loading the dataset in memory":                                                                     false,
	} {
		var config *ConfigError
		require.Equal(t, refused, errors.As(failure("pace:{a}", errors.New(text), time.Second), &config), text)
	}
}

// A store that decides after the call's time decides nothing, whether or not it obeys the context.
func TestLateStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{Store: Memory()}
		l, err := NewIn(s, "late", reserve.Must(pace.TokenBucket(1e-6, 10)), WithTimeout(50*time.Millisecond))
		require.NoError(t, err)
		require.NoError(t, l.Wait(t.Context()))
		s.late.Store(true)
		_, err = l.TryAcquire(t.Context(), 1)
		require.EqualError(t, err, `shared: no answer for "pace:{late}" within 50ms (WithTimeout): context deadline exceeded`)
		time.Sleep(time.Second)
		s.late.Store(false)
		stored, err := l.Stored(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 9, stored, 1e-3)
	})
}

type lateStore struct {
	Store
	late atomic.Bool
}

func (s *lateStore) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	if s.late.Load() {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
	}
	return s.Store.Update(context.WithoutCancel(ctx), key, f)
}
