// Package watchdog ends a test that hangs, and says which one it is.
package watchdog

import (
	"runtime/debug"
	"testing"
	"time"
)

const limit = 2 * time.Minute

// Start panics, with the stacks of all goroutines, if the test is not over within two minutes. It is for tests that
// wait for other goroutines in real time. A fault there shows as a wait without end. By itself go test reports that
// after ten minutes, as a failure of the whole package. In a testing/synctest bubble a deadlock is reported at once.
func Start(t testing.TB) {
	start(t, func(message string) {
		debug.SetTraceback("all")
		panic(message)
	})
}

func start(t testing.TB, hangs func(message string)) {
	timer := time.AfterFunc(limit, func() {
		hangs(t.Name() + " hangs: a goroutine that it waits for has not ended in " + limit.String())
	})
	t.Cleanup(func() { timer.Stop() })
}
