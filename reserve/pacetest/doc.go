// Package pacetest is for tests of programs that call a rate limited API. It has a server that enforces a limit and
// says so as real servers do, connections without a network, and the assertion that a limit was kept.
//
//	server := reserve.Must(pacetest.New(pacetest.Window(10, time.Second), pacetest.WithDialect(pacetest.GitHub)))
//	client := pacetest.Client(t, server) // or httptest.NewServer(server)
//	...
//	pacetest.NeverMoreThan(t, 10, time.Second, server.Accepted())
//
// # Servers
//
// A [Server] is an http.Handler. Its [Rule] says which calls it has room for. That may be so many in any window
// ([Window]), in each window of the clock ([FixedWindow]), out of a bucket ([Bucket]), or at a time ([InFlight]). Its
// [Dialect] says in which headers and bodies it tells its clients about that. [Server.Script] and [Server.Stop] have it
// refuse calls that it would have room for, fail, or be slow. [Settle] corrects what a call costs, once its handler
// knows. A server remembers all calls.
//
// # Bubbles
//
// All of the package works inside a bubble of testing/synctest as well as outside. In a bubble time is simulated, so a
// minute of calls takes milliseconds. Each call comes at the nanosecond that can be computed by hand. A real network
// does not work there: [Client] and [Listener] connect by pipes in memory.
//
//	synctest.Test(t, func(t *testing.T) {
//		client := pacetest.Client(t, server)
//		...
//	})
//
// A Server that is used in a bubble has to be made in it. A bubble begins in the year 2000, when the seconds since 1970
// had nine digits. Clients take such a number for a delay. So with GitHub, GitLab and Okta, let 30 years pass first.
package pacetest
