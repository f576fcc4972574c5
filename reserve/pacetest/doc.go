// Package pacetest tests programs that call a rate limited API: a server that enforces a limit as real servers do,
// connections without a network, and an assertion that a limit was kept.
//
//	server := reserve.Must(pacetest.New(pacetest.Window(10, time.Second), pacetest.WithDialect(pacetest.GitHub)))
//	client := pacetest.Client(t, server) // or httptest.NewServer(server)
//	...
//	pacetest.NeverMoreThan(t, 10, time.Second, server.Accepted())
//
// A [Server] enforces a [Rule], and speaks a [Dialect]. [Server.Script] and [Server.Stop] let it refuse, fail or be
// slow; [Settle] corrects what a call costs.
//
// The package works inside a bubble of testing/synctest, where a minute of calls takes milliseconds. Make a Server
// in the bubble that uses it. A bubble begins in the year 2000, when the seconds since 1970 had nine digits, which
// clients take for a delay: with GitHub, GitLab and Okta, let 30 years pass first.
package pacetest
