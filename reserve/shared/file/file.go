package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve/shared"
)

// Open returns a store in a folder, which it makes if there is none (its parent must exist), with mode 0700.
// Several stores, of this process and of others, may be open in one folder. There is nothing to close: files
// that are not in use are closed.
//
// A folder may hold other files: only limiters' files whose states have expired are removed.
//
// It returns an *[Error] if the folder can't be made, read or written, a *[NetworkError] if it is on a network file
// system, and a *[reserve.ValueError] for the name "", which is likely to be a variable that is not set.
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

// Durable has each state reach the disk (fsync) before its permits are granted, so that a machine that loses its power
// forgets none. It costs what the disk needs for it: 50 us to 20 ms a request. Default: a state is handed to
// the operating system, which writes it within some seconds.
func Durable() Option { return Option{func(s *store) { s.durable = true }} }

// A store is a folder. It keeps the files open that were used last.
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

// A file is a limiter's. One caller of this process uses it at a time: the one that holds turn.
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

// use returns the file of a key.
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

// leave ends a use. If many files are open, it closes this one.
func (s *store) leave(key string, f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users == 0 && len(s.files) > kept && f.lock.over() {
		delete(s.files, key)
		f.close()
	}
}

// name returns the name of a key's file.
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

// update runs one update under the file's lock. Again says that the file was replaced, and that nothing was done.
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
		// A file appears with a whole head, so that an empty one is known to be damaged.
		t, err := os.CreateTemp(filepath.Dir(path), temporary)
		if err != nil {
			return nil, &Error{Op: "create", Path: path, Err: err}
		}
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
		os.Remove(t.Name())
		if err == nil && durable {
			err = syncDir(filepath.Dir(path))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, &Error{Op: "create", Path: path, Err: err}
		}
	}
	return nil, &Error{Op: "open", Path: path, Err: errors.New("it is there, and can't be opened: a link to nothing?")}
}

// So often a file is opened and made in turns.
const rounds = 8

// read returns the two entries, the one that counts first, and the state, which is nil if it has expired or there is
// none.
func (f *file) read() (entries [2]entry, state []byte, err error) {
	if f.buf == nil {
		f.buf = make([]byte, firstRead)
	}
	n, err := f.f.ReadAt(f.buf[:firstRead], 0)
	if err != nil && err != io.EOF {
		return entries, nil, &Error{Op: "read", Path: f.path, Err: err}
	}
	entries, both, err := f.entries(n)
	if err != nil {
		return entries, nil, err
	}
	for i, e := range entries {
		over := e.length == 0 || e.expired(time.Now())
		if i == 0 && over {
			return entries, nil, nil
		} else if i == 1 && (over || !both) {
			break // there is nothing to go back to
		}
		state, whole, err := f.state(&e, n)
		if err != nil || whole {
			return entries, state, err
		}
		// The head was written and the state was not, before the power failed: the one before it counts.
	}
	return entries, nil, &CorruptError{Path: f.path, Why: "its state is damaged"}
}

// entries returns the two entries of the head, the newer one first, and whether both are whole. N bytes of the file are
// in buf.
func (f *file) entries(n int) (list [2]entry, both bool, err error) {
	if n < head {
		return list, false, &CorruptError{Path: f.path, Why: "it is cut off"}
	}
	a, one := parse(f.buf[:sector])
	b, two := parse(f.buf[sector:head])
	switch {
	case !one && !two:
		return list, false, &CorruptError{Path: f.path, Why: "it has no head of this version"}
	case !two || one && a.number > b.number:
		return [2]entry{a, b}, one && two, nil
	}
	return [2]entry{b, a}, one && two, nil
}

// state reads the state of an entry, if it is whole; n bytes of the file are in buf.
func (f *file) state(e *entry, n int) (state []byte, whole bool, err error) {
	if end := e.offset + uint64(e.length); end <= uint64(n) {
		state = f.buf[e.offset:end]
	} else {
		state = make([]byte, e.length)
		switch _, err := f.f.ReadAt(state, int64(e.offset)); {
		case err == io.EOF:
			return nil, false, &CorruptError{Path: f.path, Why: "it is cut off"}
		case err != nil:
			return nil, false, &Error{Op: "read", Path: f.path, Err: err}
		}
	}
	return state, crc32.Checksum(state, table) == e.checksum, nil
}

// write writes a state beside the one that counts, and then the head.
func (f *file) write(entries [2]entry, state []byte, until int64, durable bool) error {
	now, next := entries[0], entries[1]
	if len(state) > largest {
		return &Error{Op: "write", Path: f.path, Err: errors.New("the state is larger than 16 MiB")}
	}
	if need := uint32(len(state)); need > next.room || next.room == 0 {
		next.room = max(smallest, need+need/2)
		next.offset = max(head, now.offset+uint64(now.room), next.offset+uint64(entries[1].room))
	}
	next.number, next.length, next.until, next.dead = now.number+1, uint32(len(state)), until, false
	next.checksum = crc32.Checksum(state, table)
	if _, err := f.f.WriteAt(state, int64(next.offset)); err != nil {
		return &Error{Op: "write", Path: f.path, Err: err}
	}
	if durable {
		if err := f.f.Sync(); err != nil {
			return &Error{Op: "write", Path: f.path, Err: err}
		}
	}
	return f.point(&next, durable)
}

// point writes an entry in the place of the one that does not count.
func (f *file) point(next *entry, durable bool) error {
	// Odd numbers are in the first sector.
	var b [entrySize]byte
	next.append(b[:0])
	at := int64(sector)
	if next.number%2 == 1 {
		at = 0
	}
	if _, err := f.f.WriteAt(b[:], at); err != nil {
		return &Error{Op: "write", Path: f.path, Err: err, written: true}
	}
	if durable {
		if err := f.f.Sync(); err != nil {
			return &Error{Op: "write", Path: f.path, Err: err, written: true}
		}
	}
	return nil
}
