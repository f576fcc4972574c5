package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/turns"
)

// Open returns a store in a table, which must exist (see [Create]), without asking the server. There is nothing to
// close but the database. The table's name has lower-case letters, digits and underscores, and perhaps a schema:
// "limits.pace". Another name or a nil database is a *[reserve.ValueError].
func Open(db *sql.DB, table string, opts ...Option) (shared.Store, error) {
	name, err := quote(table)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, &reserve.ValueError{Package: "postgres", Name: "database", Value: nil, Want: "a database"}
	}
	s := &store{db: db, table: table}
	for _, opt := range opts {
		if opt.set != nil {
			opt.set(s)
		}
	}
	returning := " RETURNING set_config('synchronous_commit', 'off', true)" // for this transaction
	if s.durable {
		returning = ""
	}
	s.selects = `SELECT clock_timestamp(), t.value, t.version, t.expires > clock_timestamp()
		FROM (SELECT 1) one LEFT JOIN ` + name + ` t ON t.key = $1`
	s.updates = `UPDATE ` + name + `
		SET value = $2, version = $3, expires = clock_timestamp() + $4::bigint * interval '1 microsecond'
		WHERE key = $1 AND clock_timestamp() <= $5 AND version = $6` + returning
	s.inserts = `WITH gone AS (DELETE FROM ` + name + ` WHERE key IN (SELECT key FROM ` + name + ` WHERE key IN
			(SELECT key FROM ` + name + ` WHERE key > $1 ORDER BY key LIMIT 8) AND expires < clock_timestamp()
			FOR UPDATE SKIP LOCKED))
		INSERT INTO ` + name + ` (key, value, version, expires)
		SELECT $1::bytea, $2::bytea, $3::bigint, clock_timestamp() + $4::bigint * interval '1 microsecond'
		WHERE clock_timestamp() <= $5 ON CONFLICT (key) DO NOTHING` + returning
	return s, nil
}

// An Option changes one setting of a store.
type Option struct{ set func(*store) }

// Durable makes each write obey the connection's synchronous_commit, which is on by default: permits are granted
// when the server's disk has them. In a measurement that cost two thirds of one caller's decisions a second.
// Default: synchronous_commit = off.
func Durable() Option { return Option{func(s *store) { s.durable = true }} }

// Schema returns the statement that makes a table, for a migration.
func Schema(table string) (string, error) {
	name, err := quote(table)
	if err != nil {
		return "", err
	}
	// With half of each page free, and no index on a changing column, a hot row's versions stay on its page, where
	// the server removes old ones in passing.
	return `CREATE TABLE IF NOT EXISTS ` + name + ` (
	key     bytea PRIMARY KEY,    -- the SHA-256 of a limiter's name, its first 16 bytes
	value   bytea NOT NULL,       -- the limiter's state
	version bigint NOT NULL,      -- a random number, another one after each write
	expires timestamptz NOT NULL  -- from then on the row may be removed
) WITH (fillfactor = 50)`, nil
}

// Create makes a table by [Schema], unless a table has that name. Several processes may call it at the same time. It
// returns the server's *[Error], and a *[reserve.ValueError] for a bad name.
func Create(ctx context.Context, db *sql.DB, table string) error {
	statement, err := Schema(table)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	if state(err) == "23505" || state(err) == "42P07" { // another process was making it
		_, err = db.ExecContext(ctx, statement)
	}
	if err != nil {
		return &Error{Op: "create", Table: table, State: state(err), Err: err, written: perhapsWritten(err)}
	}
	return nil
}

var names = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`)

func quote(table string) (string, error) {
	if !names.MatchString(table) {
		return "", &reserve.ValueError{
			Package: "postgres", Name: "table", Value: table,
			Want: "a name of lower-case letters, digits and underscores, perhaps with a schema",
		}
	}
	return `"` + strings.ReplaceAll(table, ".", `"."`) + `"`, nil
}

type store struct {
	db                        *sql.DB
	table                     string
	durable                   bool
	selects, updates, inserts string
	turns                     turns.Turns // callers of one process would only get in each other's way
	crowd                     turns.Crowd // and processes
}

// Update implements [shared.Store].
func (s *store) Update(
	ctx context.Context, key string, f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error),
) error {
	leave, err := s.turns.Take(ctx, key)
	if err != nil {
		return &Error{Op: "wait", Table: s.table, Err: err}
	}
	defer leave()
	hash := sha256.Sum256([]byte(key))
	u := update{store: s, key: hash[:16]}
	var lost error // of a write that may have been done
	for tries := 0; ; tries++ {
		s.crowd.Wait(ctx, key, tries)
		begin := time.Now()
		is, err := u.read(ctx)
		switch {
		case err != nil && again(err):
			continue
		case err != nil:
			return s.failed(key, "read", err, lost != nil)
		case u.wrote(is):
			return nil
		case lost != nil && (is.exists != u.was.exists || is.version != u.was.version):
			return s.failed(key, "write", lost, true) // another process may have replaced what was written
		case lost == nil:
			var keep time.Duration
			if u.value, keep, err = f(is.now, is.value); err != nil {
				return err
			}
			u.plan(ctx, is, keep)
		}
		done, err := u.write(ctx)
		if err == nil || again(err) {
			s.crowd.Tried(key, done && err == nil, time.Since(begin))
		}
		switch {
		case done && err == nil:
			return nil
		case err == nil || again(err): // another process was first
		case perhapsWritten(err) && ctx.Err() == nil:
			lost = err
		default:
			return s.failed(key, "write", err, lost != nil || perhapsWritten(err))
		}
	}
}

func (s *store) failed(key, op string, err error, written bool) error {
	e := &Error{Op: op, Table: s.table, State: state(err), Err: err, written: written}
	if wrong(err) {
		return &shared.ConfigError{Key: key, Err: e}
	}
	return e
}

type row struct {
	now     time.Time // the server's, when it was read
	value   []byte    // nil: none that counts
	exists  bool
	version int64
}

// An update has a new version each time, which tells whether it was written. A second write does nothing.
type update struct {
	*store
	key      []byte
	was      row
	value    []byte
	keep     time.Duration
	version  int64
	notAfter time.Time // by the server's clock: then the caller has left
}

func (u *update) plan(ctx context.Context, was row, keep time.Duration) {
	u.was, u.keep, u.version = was, max(0, keep), rand.Int64()
	u.notAfter = was.now.Add(24 * time.Hour)
	if by, limited := ctx.Deadline(); limited {
		u.notAfter = was.now.Add(time.Until(by))
	}
}

func (u *update) wrote(is row) bool { return u.value != nil && is.exists && is.version == u.version }

func (u *update) read(ctx context.Context) (row, error) {
	return within(ctx, func() (r row, err error) {
		var version sql.NullInt64
		var counts sql.NullBool
		err = u.db.QueryRowContext(ctx, u.selects, u.key).Scan(&r.now, &r.value, &version, &counts)
		r.exists, r.version = version.Valid, version.Int64
		if !counts.Bool {
			r.value = nil
		}
		return r, err
	})
}

// write reports whether it replaced the row: not if another process was first, or if it is too late.
func (u *update) write(ctx context.Context) (bool, error) {
	statement, args := u.inserts, []any{u.key, u.value, u.version, u.keep.Microseconds(), u.notAfter}
	if u.was.exists {
		statement, args = u.updates, append(args, u.was.version)
	}
	return within(ctx, func() (bool, error) {
		// sql.DB repeats a statement whose answer was lost, where lib/pq says only that the connection is bad. Then
		// another process would seem to have been first.
		conn, err := u.db.Conn(ctx)
		if err != nil {
			return false, err
		}
		defer conn.Close()
		result, err := conn.ExecContext(ctx, statement, args...)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		return n == 1, err
	})
}

// within ends with the context: lib/pq waits for a stopped server.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := do()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil { // drivers say that in ways of their own
			a.err = fmt.Errorf("%w: %w", context.Cause(ctx), a.err)
		}
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
