package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/turns"
	"github.com/nextfree/pace/reserve/shared/internal/within"
)

var valueError = invalid.In("postgres")

// Open returns a store in a table, which must exist (see [Create]), without asking the server. There is nothing to
// close but the database. The table's name has lower-case letters, digits and underscores, and perhaps a schema:
// "limits.pace". Another name or a nil database is a *[reserve.ValueError].
func Open(db *sql.DB, table string, opts ...Option) (shared.Store, error) {
	name, err := quote(table)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, valueError("database", nil, "a database")
	}
	s := &store{db: db, table: table}
	if err := invalid.Apply(valueError, &s.settings, opts); err != nil {
		return nil, err
	}
	returning := " RETURNING set_config('synchronous_commit', 'off', true)" // for this transaction
	if s.durable {
		returning = ""
	}
	row := `SELECT value, version, expires FROM ` + name + ` WHERE key = $1`
	s.selects = `WITH t AS (` + row + `)` + looks
	// A process that stops while it has the row loses it after a second.
	s.locks = `WITH t AS (` + row + ` FOR UPDATE)` + looks + `,
		(SELECT set_config('idle_in_transaction_session_timeout', '1000', true)) most`
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

const looks = ` SELECT clock_timestamp(), t.value, t.version, t.expires > clock_timestamp()
	FROM (SELECT 1) one LEFT JOIN t ON true`

// An Option changes one setting of a store.
type Option func(*settings) error

type settings struct{ durable bool }

// Durable makes each write obey the connection's synchronous_commit, which is on by default: permits are granted
// when the server's disk has them. In a measurement that cost two thirds of one caller's decisions a second.
// Default: synchronous_commit = off.
func Durable() Option {
	return func(s *settings) error {
		s.durable = true
		return nil
	}
}

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
// returns the server's error in a *[shared.StoreError], and a *[reserve.ValueError] for a bad name.
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
		return failed("create", table, err, perhapsWritten(err))
	}
	return nil
}

var names = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`)

func quote(table string) (string, error) {
	if !names.MatchString(table) {
		const want = "a name of lower-case letters, digits and underscores, perhaps with a schema"
		return "", valueError("table", table, want)
	}
	return `"` + strings.ReplaceAll(table, ".", `"."`) + `"`, nil
}

type store struct {
	settings
	db                               *sql.DB
	table                            string
	selects, locks, updates, inserts string
	turns                            turns.Turns // callers of one process would only get in each other's way
	calls                            within.Calls

	contended [64]atomic.Int64 // until then (Unix nanoseconds) other processes write rows of that hash
}

// Dials says that calls make connections: see [shared.Store].
func (s *store) Dials() {}

// Update implements [shared.Store].
func (s *store) Update(
	ctx context.Context, key string, f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error),
) error {
	leave, err := s.turns.Take(ctx, key)
	if err != nil {
		return failed("lock", s.table, err, false)
	}
	defer leave()
	hash := sha256.Sum256([]byte(key))
	u := update{store: s, key: hash[:16], until: &s.contended[hash[0]%64]}
	var lost error // of a write that may have been done
	for {
		is, err := u.read(ctx)
		switch {
		case err != nil && again(err):
			continue
		case err != nil:
			return s.failed(key, "read", err, lost != nil)
		case u.wrote(is):
			return s.rollback(ctx, &is)
		case lost != nil && (is.exists != u.was.exists || is.version != u.was.version):
			_ = s.rollback(ctx, &is)
			return s.failed(key, "write", lost, true) // another process may have replaced what was written
		}
		var keep time.Duration
		if lost == nil {
			if u.value, keep, err = f(is.now, is.value); err != nil {
				_ = s.rollback(ctx, &is)
				return err
			}
			u.keep, u.version = max(0, keep), rand.Int64()
		}
		u.was = is
		done, err := u.write(ctx)
		switch {
		case done && err == nil:
			return nil
		case err == nil || again(err): // another process was first
			u.until.Store(time.Now().Add(contention).UnixNano())
		case perhapsWritten(err) && ctx.Err() == nil:
			lost = err
		default:
			return s.failed(key, "write", err, lost != nil || perhapsWritten(err))
		}
	}
}

func (s *store) failed(key, op string, err error, written bool) error {
	e := failed(op, s.table, err, written)
	if wrong(err) {
		return &shared.ConfigError{Key: key, Err: e}
	}
	return e
}

// contention is how long a row is locked while it is read and written, once another process was first: processes that
// compare and swap a hot row lose most of their writes.
const contention = time.Second

type row struct {
	now     time.Time // the server's, when it was read
	value   []byte    // nil: none that counts
	exists  bool
	version int64
	tx      *sql.Tx // has it locked; nil: no lock
}

func (s *store) rollback(ctx context.Context, r *row) error {
	if r.tx == nil {
		return nil
	}
	_, err := ask(ctx, s, func() (bool, error) { return true, r.tx.Rollback() })
	return err
}

// An update has a new version each time, which tells whether it was written. A second write does nothing.
type update struct {
	*store
	key     []byte
	until   *atomic.Int64
	was     row
	value   []byte
	keep    time.Duration
	version int64
}

func (u *update) wrote(is row) bool { return u.value != nil && is.exists && is.version == u.version }

// read reads the row. A transaction that has it locked ends with the context, if not before.
func (u *update) read(ctx context.Context) (row, error) {
	return ask(ctx, u.store, func() (r row, err error) {
		statement, query := u.selects, u.db.QueryRowContext
		if time.Now().UnixNano() < u.until.Load() {
			if r.tx, err = u.db.BeginTx(ctx, nil); err != nil {
				return r, err
			}
			statement, query = u.locks, r.tx.QueryRowContext
		}
		var version sql.NullInt64
		var counts sql.NullBool
		err = query(ctx, statement, u.key).Scan(&r.now, &r.value, &version, &counts)
		r.exists, r.version = version.Valid, version.Int64
		if !counts.Bool {
			r.value = nil
		}
		if r.tx != nil && (err != nil || !r.exists) { // there is nothing to lock
			_ = r.tx.Rollback()
			r.tx = nil
		}
		return r, err
	})
}

// write reports whether it replaced the row: not if another process was first, or if it is too late.
func (u *update) write(ctx context.Context) (bool, error) {
	notAfter := u.was.now.Add(24 * time.Hour) // by the server's clock
	if by, limited := ctx.Deadline(); limited {
		notAfter = u.was.now.Add(time.Until(by))
	}
	statement, args := u.inserts, []any{u.key, u.value, u.version, u.keep.Microseconds(), notAfter}
	if u.was.exists {
		statement, args = u.updates, append(args, u.was.version)
	}
	return ask(ctx, u.store, func() (done bool, err error) {
		if tx := u.was.tx; tx != nil { // the lock ends with the same trip; the transaction after it is empty
			_, err = tx.ExecContext(ctx, literally(statement, args)+"; COMMIT AND CHAIN")
			_ = tx.Rollback()
			return err == nil && ctx.Err() == nil, err
		}
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

// literally puts the arguments into a statement: without any, a driver sends several statements at once.
func literally(statement string, args []any) string {
	for i, arg := range args {
		text := fmt.Sprint(arg)
		switch arg := arg.(type) {
		case []byte:
			text = fmt.Sprintf("decode('%x', 'hex')", arg)
		case time.Time:
			text = arg.UTC().Format("'" + time.RFC3339Nano + "'::timestamptz")
		}
		statement = strings.ReplaceAll(statement, fmt.Sprint("$", i+1), text)
	}
	return statement
}

// ask ends with the context: lib/pq waits for a stopped server. Then its connection is left to itself, and few are.
func ask[T any](ctx context.Context, s *store, do func() (T, error)) (T, error) {
	value, _, err := within.Do(ctx, &s.calls, do)
	return value, err
}
