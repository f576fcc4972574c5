//go:build race

package matrix

// raced: the race detector sees the code of TestMatrix, TestSituations, TestTold and TestNamedAlone. Others run the same
// code for minutes with it.
const raced = true
