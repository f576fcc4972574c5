//go:build race

package keyed_test

// The race detector makes everything some ten times slower: long loops are divided by this.
const less = 10
