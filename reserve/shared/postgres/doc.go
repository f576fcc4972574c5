// Package postgres keeps limiters in a table of PostgreSQL, by database/sql and any driver (pgx's stdlib, lib/pq).
//
//	db, err := sql.Open("pgx", "postgres://...")
//	...
//	err = postgres.Create(ctx, db, "pace_limits") // or run what Schema returns in a migration
//	store, err := postgres.Open(db, "pace_limits")
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(100)))
//
// # What is promised
//
// All processes that open the table share one limiter of each name, by the server's clock. An update reads the row,
// and replaces it if no other update has meanwhile: two transactions, with no lock between them. Once another process
// was first, updates lock the row for a second, from the read to the write: one transaction, whose write and end are
// one round trip. A process that stops with the lock loses it after a second. If the answer to a write is lost, the
// store looks whether the row has it: a broken connection neither grants nor charges permits twice. A write that
// reaches the server after its caller's time does nothing.
//
// Without [Durable] a server that crashes may forget the permits of its last three wal_writer_delays, 0.6 s by
// default.
//
// # The table
//
// PostgreSQL 12 or later. A row is some hundred bytes. Its key is a hash: no API key is stored. The user needs SELECT,
// INSERT, UPDATE and DELETE on the table. An insert removes the expired rows among the 8 next to it; where as many keys
// come as go, an eighth of the rows have expired.
//
// # Connections
//
// An update uses one connection at a time. Where many keys are busy, raise SetMaxIdleConns (2 by default). lib/pq
// needs binary_parameters=yes, or it makes two round trips of each statement. Behind a pooler of transactions
// (PgBouncer) pgx also needs default_query_exec_mode=exec. Without these two, calls meet other clients' statements
// and fail (SQLSTATE 42P05 or 26000), which counts as an outage.
//
// # How many processes
//
// On a hot key processes wait for each other at the row's lock, each for one round trip. Above some ten processes use
// shared.WithAhead, or Redis: of 2,000/s and a store of 2,000 for 3 s, 8 processes got all, 32 processes half, and with
// WithAhead(64) 97 %.
package postgres
