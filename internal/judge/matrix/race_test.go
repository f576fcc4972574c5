//go:build race

package matrix

// raced: the race detector makes a simulation five times as slow. Of those that differ only in their numbers it sees the
// short ones.
const raced = true
