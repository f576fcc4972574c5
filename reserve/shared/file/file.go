package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/turns"
)

// Open returns a store in a folder, which it makes with mode 0700 if there is none (its parent must exist). Nothing has
// to be closed.
//
// It returns an *[shared.StoreError] if the folder can't be made, read or written, a *[NetworkError] if it is on a
// network file system, and a *[reserve.ValueError] for the name "" or a nil option.
func Open(dir string, opts ...Option) (shared.Store, error) {
	valueError := invalid.In("file")
	if dir == "" {
		return nil, valueError("dir", dir, "the name of a folder")
	}
	s := &store{idle: map[string]*file{}}
	if err := invalid.Apply(valueError, &s.settings, opts); err != nil {
		return nil, err
	}
	var err error
	if s.dir, err = filepath.Abs(dir); err != nil {
		return nil, failed("open", dir, err)
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, failed("create", s.dir, err)
	}
	if system := network(s.dir); system != "" {
		return nil, &NetworkError{Path: s.dir, System: system}
	}
	try, err := os.CreateTemp(s.dir, temporary)
	if err != nil {
		return nil, failed("write", s.dir, err)
	}
	try.Close()
	os.Remove(try.Name())
	if err := s.sweep(); err != nil {
		return nil, err
	}
	return s, nil
}

// An Option changes one setting of a store.
type Option func(*settings) error

type settings struct{ durable bool }

// Durable makes each state reach the disk (fsync) before its permits are granted. It costs 50 us to 20 ms a request.
// Default: the operating system writes a state within some seconds.
func Durable() Option {
	return func(s *settings) error {
		s.durable = true
		return nil
	}
}

type store struct {
	settings
	dir   string
	turns turns.Turns // of this process's callers

	mu   sync.Mutex
	idle map[string]*file // open files that no caller uses, by path
}

const (
	mostIdle  = 256
	suffix    = ".limit"      // of the files' names
	temporary = ".pace-new-*" // the names of files that are being made, as CreateTemp wants it
	rounds    = 8             // how often a file is opened and made in turns
)

func (s *store) Update(
	ctx context.Context, key string, f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error),
) error {
	path := s.path(key)
	leave, err := s.turns.Take(ctx, path)
	if err != nil {
		return failed("lock", path, err)
	}
	defer leave()
	file := s.take(path)
	defer func() { s.put(path, file) }()
	for {
		if file == nil {
			if file, err = open(path, s.durable); errors.Is(err, fs.ErrPermission) { // waiting does not cure it
				return &shared.ConfigError{Key: key, Err: err}
			} else if err != nil {
				return err
			}
		}
		again, err := file.update(ctx, s.durable, f)
		if !again {
			return err
		}
		file.Close()
		file = nil
	}
}

func (s *store) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+suffix)
}

func (s *store) take(path string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.idle[path]
	delete(s.idle, path)
	return f
}

func (s *store) put(path string, f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f == nil:
	case len(s.idle) < mostIdle:
		s.idle[path] = f
	default:
		f.Close()
	}
}

type file struct {
	*os.File
	seen time.Time // when it was last known to be the file of its name
	buf  []byte
}

// open opens a file, or makes a file with no state, which others may remove meanwhile.
func open(path string, durable bool) (*file, error) {
	for range rounds {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		switch {
		case err == nil:
			return &file{File: f}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, failed("open", path, err)
		}
		if err := create(path, durable); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, failed("create", path, err)
		}
	}
	return nil, failed("open", path, errors.New("it is there, and can't be opened: a link to nothing?"))
}

// create makes a file with a whole head: an empty file is known to be damaged.
func create(path string, durable bool) error {
	t, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	f := &file{File: t}
	err = errors.Join(f.point(entry{Number: 1}, false), f.point(entry{}, false), f.Truncate(head))
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), path) // unless the name exists
	}
	if err == nil && durable && runtime.GOOS != "windows" {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// update works under the file's lock; again: the file was replaced, and nothing was done.
func (f *file) update(
	ctx context.Context, durable bool, change func(now time.Time, old []byte) ([]byte, time.Duration, error),
) (again bool, err error) {
	if err := f.lock(ctx); err != nil {
		return false, failed("lock", f.Name(), err)
	}
	defer unlock(f.File)
	if time.Since(f.seen) > time.Second { // a person may have removed it by hand
		if !f.named() {
			return true, nil
		}
		f.seen = time.Now()
	}
	is, old, err := f.read()
	switch {
	case err != nil:
		return false, err
	case is.Until == dead:
		if f.named() { // the process that was to remove it was killed
			os.Remove(f.Name())
		}
		return true, nil
	}
	value, keep, err := change(time.Time{}, old)
	if err != nil {
		return false, err
	}
	return false, f.write(is.Number+1, value, time.Now().Add(max(0, keep)).UnixNano(), durable)
}

// lock tries until it has the lock: a caller that waits in flock can't leave. A holder needs some microseconds.
func (f *file) lock(ctx context.Context) error {
	const spins, longest = 8, time.Millisecond
	for tries := 0; ; tries++ {
		if err := tryLock(f.File); !errors.Is(err, busy) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if tries >= spins {
			wake.Sleep(ctx, rand.N(min(longest, time.Duration(tries)*5*time.Microsecond)), nil)
		}
	}
}

func (f *file) named() bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(f.Name())
	return err == nil && os.SameFile(a, b)
}
