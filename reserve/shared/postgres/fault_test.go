//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/storetest"
	"github.com/nextfree/pace/reserve/shared/postgres"
)

// A table is one of a server, behind a proxy.
type table struct {
	*server
	proxy *storetest.Proxy
	db    *sql.DB // not through the proxy
	store shared.Store
}

func newTable(t *testing.T, s *server) *table {
	p := storetest.NewProxy(t, "127.0.0.1:"+s.port)
	far := s.open("pace", p.Addr())
	t.Cleanup(func() { far.Close() })
	tb := &table{server: s, proxy: p, db: s.connect(t)}
	require.NoError(t, postgres.Create(t.Context(), tb.db, "limits"))
	var err error
	tb.store, err = postgres.Open(far, "limits")
	require.NoError(t, err)
	return tb
}

// add appends to the value at a key, and returns how often that was computed.
func add(ctx context.Context, store shared.Store, key, what string) (times int, err error) {
	err = store.Update(ctx, key, func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		times++
		return append(old[:len(old):len(old)], what...), time.Hour, nil
	})
	return times, err
}

// value returns what the server has at the only key.
func (tb *table) value() (text string) {
	err := tb.db.QueryRow("SELECT coalesce(max(convert_from(value, 'UTF8')), '') FROM limits").Scan(&text)
	require.NoError(tb.t, err)
	return text
}

// A connection breaks while a row is written: before the write arrives, or before its answer does. The write is done
// once, and computed once.
func TestCutDuringCommit(t *testing.T) {
	tb := newTable(t, start(t))
	want := ""
	for _, word := range []string{"INSERT", "UPDATE"} {
		for i, trap := range []func(*storetest.Conversation, []byte){
			(*storetest.Conversation).SendUnanswered,
			func(c *storetest.Conversation, _ []byte) { c.Cut() },
		} {
			if word == "INSERT" {
				_, err := tb.db.Exec("DELETE FROM limits")
				require.NoError(t, err)
				want = ""
			}
			what := fmt.Sprint(word, i, " ")
			want += what
			tb.proxy.On(word, trap)
			times, err := add(t.Context(), tb.store, "k", what)
			require.NoError(t, err, what)
			require.Equal(t, 1, times, what)
			require.Equal(t, want, tb.value())
		}
	}
}

// If another process has replaced the row since, nobody can tell whether the write was done.
func TestCutAndReplaced(t *testing.T) {
	tb := newTable(t, start(t))
	other, err := postgres.Open(tb.db, "limits")
	require.NoError(t, err)
	_, err = add(t.Context(), other, "k", "a")
	require.NoError(t, err)
	tb.proxy.On("UPDATE", func(c *storetest.Conversation, sent []byte) {
		c.Send(sent)
		if _, err := add(context.Background(), other, "k", "c"); err != nil {
			t.Error(err)
		}
		c.Cut()
	})
	times, err := add(t.Context(), tb.store, "k", "b")
	var e *shared.StoreError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "write", e.Op)
	require.NotErrorIs(t, err, shared.ErrNotWritten)
	require.Equal(t, 1, times)
	require.Equal(t, "abc", tb.value())
}

// A write that arrives when its caller has gone does nothing.
func TestLateWrite(t *testing.T) {
	watchdog.Start(t)
	tb := newTable(t, start(t))
	_, err := add(t.Context(), tb.store, "k", "a")
	require.NoError(t, err)
	const patience = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	gone, arrived := make(chan struct{}), make(chan struct{})
	tb.proxy.On("UPDATE", func(c *storetest.Conversation, sent []byte) {
		<-gone
		c.Send(sent)
		c.Cut()
		close(arrived)
	})
	_, err = add(ctx, tb.store, "k", "b")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, shared.ErrNotWritten, "it may have been written, as far as the caller knows")
	close(gone)
	<-arrived
	require.Equal(t, "a", tb.value())
}

// A server that does not answer keeps nobody beyond the context.
func TestSilence(t *testing.T) {
	watchdog.Start(t)
	tb := newTable(t, start(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	end := make(chan struct{})
	tb.proxy.On("SELECT", func(*storetest.Conversation, []byte) {
		cancel(stop)
		<-end
	})
	_, err := add(ctx, tb.store, "k", "a")
	close(end)
	require.ErrorIs(t, err, stop)
	require.ErrorIs(t, err, shared.ErrNotWritten)
}

// A transaction that fails because of another one is tried again.
func TestSerializable(t *testing.T) {
	watchdog.Start(t)
	tb := newTable(t, start(t))
	_, err := tb.db.Exec("ALTER DATABASE " + tb.name + " SET default_transaction_isolation = 'serializable'")
	require.NoError(t, err)
	const callers, each = 8, 20
	errs := make(chan error)
	for range callers {
		db := tb.connect(t)
		store, err := postgres.Open(db, "limits")
		require.NoError(t, err)
		go func() {
			for range each {
				if _, err := add(context.Background(), store, "k", "a"); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range callers {
		require.NoError(t, <-errs)
	}
	require.Len(t, tb.value(), callers*each)
}

// A server that was killed and started again has all that was written durably, and the store finds it by itself.
func TestKilled(t *testing.T) {
	tb := newTable(t, own(t))
	store, err := postgres.Open(tb.db, "limits", postgres.Durable())
	require.NoError(t, err)
	_, err = add(t.Context(), store, "k", "a")
	require.NoError(t, err)
	tb.kill()
	_, err = add(t.Context(), store, "k", "b")
	var e *shared.StoreError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, shared.ErrNotWritten)
	require.Contains(t, err.Error(), `postgres: can't read the table "limits": `)
	tb.restart()
	_, err = add(t.Context(), store, "k", "c")
	require.NoError(t, err)
	require.Equal(t, "ac", tb.value())
}

// What only somebody who changes the database can help is shown to every caller, whatever the limiter does when its
// store fails. A server that takes no writes is one that fails.
func TestRefused(t *testing.T) {
	s := start(t)
	admin := s.connect(t)
	require.NoError(t, postgres.Create(t.Context(), admin, "limits"))
	require.NoError(t, postgres.Create(t.Context(), admin, "limits"), "there is one")
	for _, line := range []string{
		"CREATE ROLE stranger LOGIN", "CREATE ROLE reader LOGIN", "GRANT SELECT ON limits TO reader",
		"CREATE ROLE replica LOGIN", "GRANT SELECT, INSERT, UPDATE, DELETE ON limits TO replica",
		"ALTER ROLE replica SET default_transaction_read_only = on",
		"CREATE TABLE other (key bytea PRIMARY KEY)",
	} {
		_, err := admin.Exec(line)
		require.NoError(t, err, line)
	}
	for _, tt := range []struct {
		user, table, state string
		config             bool
	}{
		{"pace", "missing", "42P01", true},
		{"pace", "other", "42703", true},
		{"pace", "nowhere.limits", "42P01", true},
		{"stranger", "limits", "42501", true},
		{"reader", "limits", "42501", true},
		{"nobody", "limits", "28000", true},
		{"replica", "limits", "25006", false},
	} {
		what := tt.user + ", " + tt.table
		db := s.open(tt.user, "127.0.0.1:"+s.port)
		defer db.Close()
		store, err := postgres.Open(db, tt.table)
		require.NoError(t, err, what)
		_, err = add(t.Context(), store, "k", "a")
		var e *shared.StoreError
		require.ErrorAs(t, err, &e, what)
		var refused interface{ SQLState() string }
		require.ErrorAs(t, err, &refused, what)
		require.Equal(t, tt.state, refused.SQLState(), what)
		require.ErrorIs(t, err, shared.ErrNotWritten, what)
		for _, mode := range []shared.Option{shared.FailClosed(), shared.FailOpen(), shared.Local(0.5)} {
			l, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(10)), mode, shared.WithTimeout(time.Minute))
			require.NoError(t, err)
			_, err = l.Acquire(t.Context(), 1)
			var config *shared.ConfigError
			require.Equal(t, tt.config, errors.As(err, &config), what)
		}
	}
	require.Error(t, postgres.Create(t.Context(), admin, "nowhere.limits"))
}

// An insert removes rows that have expired, so the table does not grow without end.
func TestExpired(t *testing.T) {
	s := start(t)
	db := s.connect(t)
	require.NoError(t, postgres.Create(t.Context(), db, "limits"))
	store, err := postgres.Open(db, "limits")
	require.NoError(t, err)
	put := func(key string, keep time.Duration) (old []byte) {
		require.NoError(t, store.Update(t.Context(), key, func(_ time.Time, was []byte) ([]byte, time.Duration, error) {
			old = was
			return []byte(key), keep, nil
		}))
		return old
	}
	count := func(where string) (n int) {
		require.NoError(t, db.QueryRow("SELECT count(*) FROM limits WHERE "+where).Scan(&n))
		return n
	}
	const keys = 300
	for i := range keys {
		require.Nil(t, put(fmt.Sprint("visitor ", i), 0))
		require.Nil(t, put("resident", 0), "it has expired")
	}
	require.Less(t, count("true"), keys/4)
	for i := range keys {
		put(fmt.Sprint("stays ", i), time.Hour)
	}
	require.Less(t, count("expires < now()"), keys/20)
	require.Equal(t, keys, count("expires > now()"))
	require.Equal(t, []byte("stays 7"), put("stays 7", time.Hour))
}
