package file

import (
	"context"
	"sync"
)

// A lock is waited for by one goroutine of each open file. A caller that gives up leaves it to the next.
type lock struct {
	ended  chan struct{} // closed when the goroutine has the lock, or can't have it
	err    error         // then
	mu     sync.Mutex
	wanted bool // a caller waits
	done   bool
}

// spins are tries before a goroutine waits: a holder needs some microseconds.
const spins = 8

func (f *file) acquire(ctx context.Context) error {
	if !f.lock.want() {
		for range spins {
			if tryLock(f.f) {
				return nil
			}
		}
		l, opened := &lock{ended: make(chan struct{}), wanted: true}, f.f
		f.lock = l
		go func() { l.end(waitLock(opened), func() { unlock(opened) }) }()
	}
	l := f.lock
	select {
	case <-l.ended:
		f.lock = nil
		if l.err != nil {
			f.close()
		}
		return l.err
	case <-ctx.Done():
		if l.leave() {
			unlock(f.f)
		}
		return context.Cause(ctx)
	}
}

// want reports false if the goroutine has ended.
func (l *lock) want() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = !l.done
	return l.wanted
}

func (l *lock) end(err error, free func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err, l.done = err, true; err == nil && !l.wanted {
		free()
	}
	close(l.ended)
}

// leave reports whether the caller has got the lock meanwhile.
func (l *lock) leave() (has bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = false
	return l.done && l.err == nil
}

func (l *lock) over() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}
