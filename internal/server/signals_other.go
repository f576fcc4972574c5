//go:build !unix

package server

import "os"

// Other systems can't stop a process: the test that wants to fails there.
var (
	sigstop = os.Interrupt
	sigcont = os.Interrupt
)
