//go:build !race

package limitertest

const Slower = 1
