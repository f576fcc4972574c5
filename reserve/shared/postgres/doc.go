// Package postgres keeps limiters in a table of PostgreSQL, for the processes and machines of a team that has no Redis.
// It uses database/sql, with any driver (pgx's stdlib, lib/pq), and imports none.
//
//	db, err := sql.Open("pgx", "postgres://...")
//	...
//	err = postgres.Create(ctx, db, "pace_limits") // or run what Schema returns in a migration
//	store, err := postgres.Open(db, "pace_limits")
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(100)))
//
// # What is promised
//
// All processes that open the table share one limiter of each name. The arithmetic runs in Go, by the server's clock.
// An update reads the row, and then replaces it if no other update has done so meanwhile: two statements, each a
// transaction of its own. So no lock is held while a process computes or an answer travels. A process that is killed,
// stopped or cut off keeps no other waiting. It loses the permits that it was promised and has not used.
//
// If the answer to a write is lost, the store asks again whether the row has what it wrote, while its caller has time.
// So a connection that breaks neither grants permits twice nor charges for them twice. A write that reaches the server
// after its caller's time does nothing.
//
// Without [Durable] the server acknowledges a write before it is on its disk (synchronous_commit = off). A server that
// crashes may then forget the permits of its last three wal_writer_delays, 0.6 s by default. The table stays whole.
//
// # The table
//
// A row is some hundred bytes. Its key is the SHA-256 of the limiter's name, cut to 16 bytes: no API key is stored. The
// user needs SELECT, INSERT, UPDATE and DELETE on the table. A row that has expired (its limiter has long been full)
// counts as none. An insert removes the expired rows among the 8 that are next to it, so the table does not grow
// without end. With as many keys that come as go, an eighth of its rows have expired. Rows whose time (expires) has
// passed may be removed at any moment.
//
// # Connections
//
// An update uses one connection at a time. database/sql keeps two idle ones. Where many keys are busy, more
// (SetMaxIdleConns) save connecting. lib/pq needs binary_parameters=yes, or it makes two round trips of each statement.
//
// Behind a pooler of transactions (PgBouncer, pool_mode=transaction) a driver must not prepare statements by name: pgx
// needs default_query_exec_mode=exec, lib/pq binary_parameters=yes. Without these two, statements of other clients are
// met, and calls fail (SQLSTATE 42P05 or 26000), which counts as an outage.
//
// # How many processes
//
// A row is written if nobody else has written it since it was read. A process that lost a write waits for a random time
// before the next, and longer the more it loses. So 8 processes that are busy on one key try 1.4 times for a write that
// counts, and 32 about 2.2 times. They got 1,200 and 360 permits of 2,000 a second (BenchmarkCrowd, two processors, the
// server among them). Above some ten processes on a hot key, use Redis. Callers of one process don't count.
package postgres
