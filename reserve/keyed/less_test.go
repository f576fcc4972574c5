//go:build !race

package keyed_test

const less = 1
