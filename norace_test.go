//go:build !race

package pace_test

const slow = false
