package shared_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a client of a server's.
func connect(t testing.TB, s *server.Server) *redis.Client {
	c := &redis.Client{Addr: s.Addr}
	t.Cleanup(c.Close)
	return c
}

// newShared returns a limiter whose time-out no busy machine reaches, unless the options say
// otherwise.
func newShared(t testing.TB, c shared.Scripter, name string, p *reserve.Policy, opts ...shared.Option) *shared.Limiter {
	opts = append([]shared.Option{shared.WithTimeout(5 * time.Second)}, opts...)
	if in, ok := c.(place); ok && in.store != nil {
		l, err := shared.NewIn(in.store, name, p, opts...)
		require.NoError(t, err)
		return l
	}
	l, err := shared.New(c, name, p, opts...)
	require.NoError(t, err)
	return l
}
