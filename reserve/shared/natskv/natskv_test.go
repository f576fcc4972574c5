package natskv_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
	"github.com/nextfree/pace/reserve/shared/natskv"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The server leaves these, one for each process.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/pse.updateUsage"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).setFirstPingTimer"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.init.0.func1"))
}

// start starts a server with JetStream in this process.
func start(t testing.TB, dir string, change func(o *server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
		NoLog: true, NoSigs: true}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(20*time.Second))
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

func connect(t testing.TB, url string, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	opts = append(opts, nats.ReconnectBufSize(-1), nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	c, err := nats.Connect(url, opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	js, err := jetstream.New(c)
	require.NoError(t, err)
	return js
}

func bucket(t testing.TB, js jetstream.JetStream, name string, ttl time.Duration) {
	t.Helper()
	_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name, TTL: ttl})
	require.NoError(t, err)
}

// add appends to the value at a key, and returns how often that was computed.
func add(ctx context.Context, store shared.Store, key, what string) (times int, value string, err error) {
	err = store.Update(ctx, key, func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		times++
		value = string(old) + what
		return []byte(value), time.Hour, nil
	})
	return times, value, err
}

// The suite of all stores. PACE_SEQUENCES says how many random sequences it has.
func TestSuite(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	sequences, _ := strconv.Atoi(os.Getenv("PACE_SEQUENCES"))
	names := map[*testing.T]string{}
	storetest.Run(t, func(t *testing.T) shared.Store {
		js := connect(t, s.ClientURL())
		if names[t] == "" {
			names[t] = fmt.Sprint("limits_", len(names))
			bucket(t, js, names[t], 0)
		}
		store, err := natskv.Open(js, names[t])
		require.NoError(t, err)
		return store
	}, sequences)
}

func TestBadArguments(t *testing.T) {
	_, err := natskv.Open(nil, "limits")
	require.EqualError(t, err, "natskv: JetStream is <nil>; want a JetStream")
	js := connect(t, start(t, t.TempDir(), nil).ClientURL())
	for _, name := range []string{"", "a.b", "a b", "*"} {
		_, err := natskv.Open(js, name)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value)
	}
}

// What only somebody who changes the server can help is shown to every caller, whatever the limiter does when its store
// fails.
func TestRefused(t *testing.T) {
	stranger := &server.User{Username: "stranger", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{"$KV.limits.>"}}}}
	blind := &server.User{Username: "blind", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.INFO.KV_limits"}}}}
	s := start(t, t.TempDir(), func(o *server.Options) {
		o.Users = []*server.User{{Username: "pace"}, stranger, blind}
	})
	admin := connect(t, s.ClientURL(), nats.UserInfo("pace", ""))
	bucket(t, admin, "limits", 0)
	bucket(t, admin, "short", 5*time.Second)
	for _, tt := range []struct{ user, bucket, want string }{
		{"pace", "missing", `natskv: can't read the bucket "missing": nats: bucket not found`},
		{"pace", "short", `natskv: the bucket "short" forgets what is older than 5s, and a limiter needs 1`},
		{"stranger", "limits", `Permissions Violation for Publish to "$KV.limits.`},
		{"blind", "limits", `Permissions Violation for Publish to "$JS.API.STREAM.INFO.KV_limits"`},
	} {
		store, err := natskv.Open(connect(t, s.ClientURL(), nats.UserInfo(tt.user, "")), tt.bucket)
		require.NoError(t, err)
		for _, mode := range []shared.Option{shared.FailClosed(), shared.FailOpen(), shared.Local(0.5)} {
			policy := reserve.Must(pace.TokenBucket(1, 10))
			l, err := shared.NewIn(store, "api", policy, mode, shared.WithTimeout(300*time.Millisecond))
			require.NoError(t, err)
			_, err = l.Acquire(t.Context(), 11)
			var config *shared.ConfigError
			require.ErrorAs(t, err, &config, "%v", tt)
			require.ErrorContains(t, err, tt.want)
		}
	}
}

// A bucket that is made later is found.
func TestMadeLater(t *testing.T) {
	js := connect(t, start(t, t.TempDir(), nil).ClientURL())
	store, err := natskv.Open(js, "limits")
	require.NoError(t, err)
	_, _, err = add(t.Context(), store, "k", "a")
	var e *shared.StoreError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, jetstream.ErrBucketNotFound)
	require.ErrorIs(t, err, shared.ErrNotWritten)
	bucket(t, js, "limits", 0)
	_, value, err := add(t.Context(), store, "k", "b")
	require.NoError(t, err)
	require.Equal(t, "b", value)
}

// Somebody deletes a key by hand: it is a limiter that is new.
func TestDeleted(t *testing.T) {
	js := connect(t, start(t, t.TempDir(), nil).ClientURL())
	bucket(t, js, "limits", 0)
	store, err := natskv.Open(js, "limits")
	require.NoError(t, err)
	for _, remove := range []func(kv jetstream.KeyValue, key string) error{
		func(kv jetstream.KeyValue, key string) error { return kv.Delete(t.Context(), key) },
		func(kv jetstream.KeyValue, key string) error { return kv.Purge(t.Context(), key) },
	} {
		_, _, err = add(t.Context(), store, "k", "a")
		require.NoError(t, err)
		kv, err := js.KeyValue(t.Context(), "limits")
		require.NoError(t, err)
		keys, err := kv.Keys(t.Context())
		require.NoError(t, err)
		require.Len(t, keys, 1)
		require.NotContains(t, keys[0], "k", "names are hashed")
		require.NoError(t, remove(kv, keys[0]))
		_, value, err := add(t.Context(), store, "k", "b")
		require.NoError(t, err)
		require.Equal(t, "b", value)
		require.NoError(t, remove(kv, keys[0]))
	}
}

// A server that was killed and started again has what it had, and the store finds it by itself.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	addr := s.Addr().String()
	js := connect(t, s.ClientURL())
	bucket(t, js, "limits", 0)
	store, err := natskv.Open(js, "limits")
	require.NoError(t, err)
	_, _, err = add(t.Context(), store, "k", "a")
	require.NoError(t, err)
	s.Shutdown()
	s.WaitForShutdown()
	require.Eventually(t, func() bool { return !js.Conn().IsConnected() }, 20*time.Second, 5*time.Millisecond)
	_, _, err = add(t.Context(), store, "k", "c")
	var e *shared.StoreError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, shared.ErrNotWritten)
	require.EqualError(t, err, `natskv: can't read the bucket "limits": nats: server is disconnected`)

	start(t, dir, func(o *server.Options) { _, _ = fmt.Sscanf(addr, "127.0.0.1:%d", &o.Port) })
	require.Eventually(t, func() bool { return js.Conn().IsConnected() }, 20*time.Second, 5*time.Millisecond)
	_, value, err := add(t.Context(), store, "k", "d")
	require.NoError(t, err)
	require.Equal(t, "ad", value)
}

// A connection breaks while a value is written: nobody can tell whether that was done, so it is not done again.
func TestCutDuringWrite(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	p := storetest.NewProxy(t, s.Addr().String())
	js, near := connect(t, "nats://"+p.Addr()), connect(t, s.ClientURL())
	bucket(t, near, "limits", 0)
	far, err := natskv.Open(js, "limits")
	require.NoError(t, err)
	store, err := natskv.Open(near, "limits")
	require.NoError(t, err)
	_, _, err = add(t.Context(), far, "k", "a")
	require.NoError(t, err)
	for i, tt := range []struct {
		trap func(*storetest.Conversation, []byte)
		want string
	}{
		{(*storetest.Conversation).SendUnanswered, "ab;"},
		{func(c *storetest.Conversation, _ []byte) { c.Cut() }, "ab;;"},
	} {
		require.Eventually(t, js.Conn().IsConnected, 20*time.Second, 5*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		p.On("HPUB $KV.limits.", tt.trap)
		times, _, err := add(ctx, far, "k", "b")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, i)
		require.NotErrorIs(t, err, shared.ErrNotWritten, i)
		require.Equal(t, 1, times, i)
		_, value, err := add(t.Context(), store, "k", ";")
		require.NoError(t, err)
		require.Equal(t, tt.want, value, i)
	}
}

// A permission violation of long ago, which the connection remembers, hides no later outage: that has its fallback.
func TestPermissionViolationOfLongAgo(t *testing.T) {
	hash := sha256.Sum256([]byte("pace:{denied}"))
	s := start(t, t.TempDir(), func(o *server.Options) {
		o.Users = []*server.User{{Username: "pace", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"$KV.limits." + hex.EncodeToString(hash[:16])}}}}}
	})
	p := storetest.NewProxy(t, s.Addr().String())
	js := connect(t, "nats://"+p.Addr(), nats.UserInfo("pace", ""))
	bucket(t, js, "limits", 0)
	store, err := natskv.Open(js, "limits")
	require.NoError(t, err)
	named := func(name string) *shared.Limiter {
		policy := reserve.Must(pace.TokenBucket(1, 10))
		l, err := shared.NewIn(store, name, policy, shared.FailOpen(), shared.WithTimeout(300*time.Millisecond))
		require.NoError(t, err)
		return l
	}
	_, err = named("denied").TryAcquire(t.Context(), 1)
	var config *shared.ConfigError
	require.ErrorAs(t, err, &config)

	l := named("api")
	require.Eventually(t, func() bool {
		ok, err := l.TryAcquire(t.Context(), 1)
		return ok && err == nil
	}, 20*time.Second, 20*time.Millisecond)
	require.ErrorIs(t, js.Conn().LastError(), nats.ErrPermissionViolation, "it remembers")
	was := l.Fallbacks()
	p.On("HPUB $KV.limits.", func(*storetest.Conversation, []byte) {}) // it is lost, and the connection stays
	ok, err := l.TryAcquire(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Greater(t, l.Fallbacks(), was)
}
