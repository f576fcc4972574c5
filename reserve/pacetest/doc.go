// Package pacetest is for tests of programs that call a rate limited API: a server that enforces a limit and says so as
// real servers do, connections without a network, and the assertion that a limit was kept.
//
//	server := reserve.Must(pacetest.New(pacetest.Window(10, time.Second), pacetest.WithDialect(pacetest.GitHub)))
//	client := pacetest.Client(t, server) // or httptest.NewServer(server)
//	...
//	pacetest.NeverMoreThan(t, 10, time.Second, server.Accepted())
//
// A [Server] is an http.Handler. Its [Rule] says which calls it has room for, and its [Dialect] in which headers and
// bodies it says so. [Server.Script] and [Server.Stop] let it refuse, fail or be slow; [Settle] corrects what a call
// costs once its handler knows. A server remembers all calls.
//
// All of the package works inside a bubble of testing/synctest, where a minute of calls takes milliseconds. A real
// network does not work there, so [Client] and [Listener] connect by pipes in memory. Make a Server in the bubble that
// uses it. A bubble begins in the year 2000, when the seconds since 1970 had nine digits, which clients take for a delay:
// with GitHub, GitLab and Okta, let 30 years pass first.
package pacetest
