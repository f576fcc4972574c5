//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package file

import (
	"errors"
	"os"
)

func tryLock(*os.File) bool         { return false }
func waitLock(*os.File) error       { return errors.ErrUnsupported }
func unlock(*os.File)               {}
func same(*os.File, string) bool    { return true }
func publish(from, to string) error { return os.Link(from, to) }

var removesOpen = true

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
