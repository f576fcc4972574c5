package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve/shared"
)

// Open returns a store in a folder, which it makes with mode 0700 if there is none (its parent must exist). Several
// stores may share a folder. There is nothing to close.
//
// It returns an *[Error] if the folder can't be made, read or written, a *[NetworkError] if it is on a network file
// system, and a *[reserve.ValueError] for the name "".
func Open(dir string, opts ...Option) (shared.Store, error) {
	if dir == "" {
		return nil, invalid.In("file")("dir", dir, "the name of a folder")
	}
	s := &store{files: map[string]*file{}}
	for _, opt := range opts {
		if opt.set != nil {
			opt.set(s)
		}
	}
	var err error
	if s.dir, err = filepath.Abs(dir); err != nil {
		return nil, &Error{Op: "open", Path: dir, Err: err}
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, &Error{Op: "create", Path: s.dir, Err: err}
	}
	if system := network(s.dir); system != "" {
		return nil, &NetworkError{Path: s.dir, System: system}
	}
	try, err := os.CreateTemp(s.dir, temporary)
	if err != nil {
		return nil, &Error{Op: "write", Path: s.dir, Err: err}
	}
	try.Close()
	os.Remove(try.Name())
	if err := s.sweep(); err != nil {
		return nil, err
	}
	return s, nil
}

// An Option changes one setting of a store.
type Option struct{ set func(*store) }

// Durable makes each state reach the disk (fsync) before its permits are granted. It costs 50 us to 20 ms a request.
// Default: the operating system writes a state within some seconds.
func Durable() Option { return Option{func(s *store) { s.durable = true }} }

type store struct {
	dir     string
	durable bool

	mu    sync.Mutex
	files map[string]*file // by key
}

const (
	kept      = 256           // so many files are kept open while they are not in use
	suffix    = ".limit"      // of the files' names
	temporary = ".pace-new-*" // the names of files that are being made, as CreateTemp wants it
)

// A file is a limiter's. The caller of this process that holds turn uses it.
type file struct {
	path  string
	turn  chan struct{} // holds one thing while no goroutine has the turn
	users int           // that have the turn or wait for it; the store's mu
	f     *os.File      // nil: not open
	lock  *lock         // the one that a goroutine waits for; nil: none
	seen  time.Time     // when it was last known to be the file of that name
	buf   []byte
}

// Update implements [shared.Store].
func (s *store) Update(
	ctx context.Context, key string, f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error),
) error {
	file := s.use(key)
	defer s.leave(key, file)
	select {
	case <-file.turn:
	case <-ctx.Done():
		return &Error{Op: "lock", Path: file.path, Err: context.Cause(ctx)}
	}
	defer func() { file.turn <- struct{}{} }()
	for {
		again, err := file.update(ctx, s.durable, f)
		if !again {
			return err
		}
	}
}

func (s *store) use(key string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[key]
	if f == nil {
		f = &file{path: filepath.Join(s.dir, name(key)), turn: make(chan struct{}, 1)}
		f.turn <- struct{}{}
		s.files[key] = f
	}
	f.users++
	return f
}

// leave closes the file if many are open.
func (s *store) leave(key string, f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users == 0 && len(s.files) > kept && f.lock.over() {
		delete(s.files, key)
		f.close()
	}
}

func name(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16]) + suffix
}

func (f *file) close() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
}

// update works under the file's lock. again says that the file was replaced, and nothing was done.
func (f *file) update(
	ctx context.Context, durable bool, change func(now time.Time, old []byte) ([]byte, time.Duration, error),
) (again bool, err error) {
	if f.f == nil {
		if f.f, err = open(ctx, f.path, durable); err != nil {
			return false, err
		}
		f.seen = time.Time{}
	}
	opened := f.f
	if err := f.acquire(ctx); err != nil {
		return false, &Error{Op: "lock", Path: f.path, Err: err}
	}
	defer unlock(opened)
	if time.Since(f.seen) > time.Second { // a person may have removed it by hand
		if !same(opened, f.path) {
			f.close()
			return true, nil
		}
		f.seen = time.Now()
	}
	entries, old, err := f.read()
	switch {
	case err != nil:
		return false, err
	case entries[0].dead:
		if same(opened, f.path) { // the process that was to remove it was killed
			os.Remove(f.path)
		}
		f.close()
		return true, nil
	}
	value, keep, err := change(time.Time{}, old)
	if err != nil {
		return false, err
	}
	return false, f.write(entries, value, time.Now().Add(max(0, keep)).UnixNano(), durable)
}

// open opens a file, or makes one with no state. Others may remove it meanwhile.
func open(ctx context.Context, path string, durable bool) (*os.File, error) {
	for range rounds {
		if ctx.Err() != nil {
			return nil, &Error{Op: "open", Path: path, Err: context.Cause(ctx)}
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			return f, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, &Error{Op: "open", Path: path, Err: err}
		}
		err = create(path, durable)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, &Error{Op: "create", Path: path, Err: err}
		}
	}
	return nil, &Error{Op: "open", Path: path, Err: errors.New("it is there, and can't be opened: a link to nothing?")}
}

// rounds is how often a file is opened and made in turns.
const rounds = 8

// create makes a file with a whole head: an empty file is known to be damaged.
func create(path string, durable bool) error {
	t, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	first := make([]byte, head+2*smallest)
	(&entry{number: 1, offset: head, room: smallest}).append(first[:0])
	(&entry{number: 0, offset: head + smallest, room: smallest}).append(first[sector:sector])
	_, err = t.Write(first)
	if err == nil && durable {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Close()); err == nil {
		err = publish(t.Name(), path)
	}
	if err == nil && durable {
		err = syncDir(filepath.Dir(path))
	}
	return err
}
