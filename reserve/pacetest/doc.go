// Package pacetest tests programs that call a rate limited API: with a server that enforces a limit, connections
// without a network ([Client]), and an assertion that a limit was kept ([NeverMoreThan]). The example of [New] is a
// whole test.
//
// [Server.Script] and [Server.Stop] let the server refuse, fail or be slow; [Settle] corrects what a call costs.
//
// In a bubble of testing/synctest, where the Server must be made, a minute of calls takes milliseconds. It begins in
// the year 2000, when the seconds since 1970 had nine digits, which clients take for a delay: with GitHub, GitLab and
// Okta, let 30 years pass first.
package pacetest
