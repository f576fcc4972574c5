package bodies

import (
	"context"
	"io"
	"sync"
)

// A Watcher gets what was read of a response's body. Show and Last are called one after the other.
type Watcher interface {
	Show(piece []byte)
	Last() // nothing follows
	Over() // follows Last, under no lock
}

// Watched is a response's body with a Watcher. It is over when it is closed, fails, was read to its end, or its
// request's context ends.
type Watched struct {
	io.ReadCloser
	by   Watcher
	stop func() bool

	mu   sync.Mutex
	over bool
}

// Watch returns a body to replace a response's.
func (w *Watched) Watch(ctx context.Context, of io.ReadCloser, by Watcher) io.ReadCloser {
	w.ReadCloser, w.by = of, by
	if ctx.Done() != nil {
		w.mu.Lock() // it may be over at once
		defer w.mu.Unlock()
		w.stop = context.AfterFunc(ctx, w.End)
	}
	return Instead(of, w)
}

// IsWatched reports whether Watch was called.
func (w *Watched) IsWatched() bool { return w.by != nil }

func (w *Watched) Read(p []byte) (n int, err error) {
	n, err = w.ReadCloser.Read(p)
	w.show(p[:n])
	if err != nil {
		w.End()
	}
	return n, err
}

func (w *Watched) show(piece []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && len(piece) > 0 {
		w.by.Show(piece)
	}
}

func (w *Watched) Close() error {
	defer w.End()
	return w.ReadCloser.Close()
}

// End makes the body over, if it is watched.
func (w *Watched) End() {
	if w.IsWatched() && w.last() {
		w.by.Over()
	}
}

func (w *Watched) last() (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.over = true
	if w.stop != nil {
		w.stop()
	}
	w.by.Last()
	return true
}
