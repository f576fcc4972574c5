// Package bench compares pace with other limiters. It is a module of its own, so that
// these never reach the go.mod of pace's users. README.md says what can be run
// here, and what came of it.
package bench
