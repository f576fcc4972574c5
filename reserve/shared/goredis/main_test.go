package goredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	// After many failed dials go-redis tries by itself, and a client that is closed waits for that for some seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// connect returns a client of a server's with the settings that the documentation asks for.
func connect(t testing.TB, s *server.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eachServer runs a test on the server that there is, under its name: see [server.Program].
func eachServer(t *testing.T, test func(t *testing.T, c *redis.Client)) {
	t.Run(server.Program(), func(t *testing.T) { test(t, connect(t, server.Start(t))) })
}

// newShared returns a limiter whose time-out no busy machine reaches, unless the options say
// otherwise.
func newShared(t testing.TB, c redis.Scripter, name string, p *reserve.Policy, opts ...shared.Option) *shared.Limiter {
	l, err := shared.New(goredis.Client(c), name, p, append([]shared.Option{shared.WithTimeout(5 * time.Second)}, opts...)...)
	require.NoError(t, err)
	return l
}
