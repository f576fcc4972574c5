//go:build !race

package inbound_test

const less = 1
