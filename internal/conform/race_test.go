//go:build race

package conform

// slow says that the race detector is on.
const slow = true
