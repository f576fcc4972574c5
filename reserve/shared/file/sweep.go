package file

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"
)

var (
	limiters = regexp.MustCompile(`^[0-9a-f]{32}\.limit$`)
	begun    = regexp.MustCompile(`^\.pace-new-[0-9]+$`)
)

// swept is how many files each Open looks at.
const swept = 32

// sweep removes some expired files, and what a killed process left of a new one: after a minute, and only the
// store's own names.
func (s *store) sweep() error {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return failed("read", s.dir, err)
	}
	var ours []fs.DirEntry
	for _, d := range list {
		if d.Type().IsRegular() && (limiters.MatchString(d.Name()) || begun.MatchString(d.Name())) {
			ours = append(ours, d)
		}
	}
	first := rand.IntN(max(1, len(ours)))
	for i := range min(swept, len(ours)) {
		d := ours[(first+i)%len(ours)]
		path := filepath.Join(s.dir, d.Name())
		switch info, err := d.Info(); {
		case err != nil || time.Since(info.ModTime()) <= time.Minute:
		case limiters.MatchString(d.Name()):
			remove(path)
		case info.Size() <= head:
			os.Remove(path)
		}
	}
	return nil
}

var removesOpen = runtime.GOOS != "windows"

// remove marks an expired file as dead for the processes that have it open. Where open files can't be removed, it
// stays.
func remove(path string) {
	opened, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	f := &file{File: opened}
	defer f.Close()
	if tryLock(f.File) != nil {
		return
	}
	is, state, err := f.read()
	expired := err == nil && state == nil && f.named()
	if expired && removesOpen && f.point(entry{Number: is.Number + 1, Until: dead}, false) == nil {
		os.Remove(path)
	}
	unlock(f.File)
	if f.Close(); expired && !removesOpen {
		os.Remove(path)
	}
}
