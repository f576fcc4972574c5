package shared

import (
	"context"
	"errors"
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

// A store that decides too late is named.
func TestLateStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewIn(&lateStore{Memory()}, "late", reserve.Must(pace.Bursty(10)), WithTimeout(50*time.Millisecond))
		require.NoError(t, err)
		_, err = l.TryAcquire(t.Context(), 1)
		require.EqualError(t, err, `shared: no answer for "pace:{late}" within 50ms (WithTimeout): `+
			`the request reached package shared's store after its time`)
	})
}

type lateStore struct{ Store }

func (s *lateStore) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	<-ctx.Done()
	return s.Store.Update(context.WithoutCancel(ctx), key, f)
}
