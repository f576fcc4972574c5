//go:build race

package pace_test

// slow says that the race detector is on.
const slow = true
