//go:build race

package limitertest

// Slower is about how many times slower the race detector makes a test, if it is on: long loops are divided by it.
const Slower = 10
