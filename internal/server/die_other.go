//go:build !linux

package server

import "os/exec"

// dieWithUs does nothing: only Linux has such a thing.
func dieWithUs(*exec.Cmd) {}
