//go:build race

package inbound_test

// The race detector makes loops some ten times slower.
const less = 20
