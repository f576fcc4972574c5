package outbound

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// settle tells each limit what an attempt used, now or when the body has ended.
func (a *attempt) settle(refused bool) {
	r := a.response
	var w *watchedBody
	for of := range a.way.charges.all {
		switch {
		case of.limit.used != nil && refused:
			a.settled(of, 0)
		case of.limit.used != nil:
			u := of.limit.used(r)
			if u == nil {
				of.keep()
				continue
			}
			if w == nil {
				w = &watchedBody{ReadCloser: r.Body, attempt: a}
				w.usages = w.few[:0]
			}
			w.usages = append(w.usages, watched{*of, u})
		}
	}
	a.phase = idle
	if w != nil {
		w.watch(r)
	}
}

type watched struct {
	charge charge
	usage  Usage
}

// A watchedBody shows its pieces to its usages.
type watchedBody struct {
	io.ReadCloser
	attempt *attempt
	stop    func() bool

	mu     sync.Mutex
	ended  bool
	usages []watched
	few    [few]watched // of usages
}

func (w *watchedBody) watch(r *http.Response) {
	if ctx := w.attempt.request.Context(); ctx.Done() != nil {
		w.mu.Lock() // it may be over at once
		w.stop = context.AfterFunc(ctx, w.over)
		w.mu.Unlock()
	}
	r.Body = bodies.Instead(w.ReadCloser, w)
}

func (w *watchedBody) Read(p []byte) (n int, err error) {
	n, err = w.ReadCloser.Read(p)
	w.show(p[:n])
	if err != nil {
		w.over()
	}
	return n, err
}

func (w *watchedBody) show(piece []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || len(piece) == 0 {
		return
	}
	for i := range w.usages {
		_, _ = w.usages[i].usage.Write(piece)
	}
}

func (w *watchedBody) Close() error {
	defer w.over()
	return w.ReadCloser.Close()
}

func (w *watchedBody) over() {
	w.mu.Lock()
	ended, stop := w.ended, w.stop
	w.ended = true
	w.mu.Unlock()
	if ended {
		return
	}
	if stop != nil {
		stop()
	}
	for i := range w.usages {
		a := &w.usages[i].charge
		if n, known := w.usages[i].usage.Used(); known {
			w.attempt.settled(a, n)
		} else {
			a.keep()
		}
	}
}
