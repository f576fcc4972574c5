package outbound

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// settle says to each limit what an attempt came to, now or when the body has ended.
func (t *Transport) settle(c *call, r *http.Response, refused bool) {
	var watched []watched
	for i := range c.asks {
		a := &c.asks[i]
		switch {
		case a.limit.used != nil && refused:
			c.settled(a, 0)
		case a.limit.used != nil:
			if u := a.limit.used(r); u != nil {
				watched = append(watched, watchedOf(a, u))
			}
		case a.limit.cost == nil && t.after != nil:
			c.settled(a, t.after(r))
		}
	}
	if len(watched) > 0 && r.Body != nil {
		onEnd(c.ctx, r, func(piece []byte) {
			for i := range watched {
				watched[i].usage.Write(piece)
			}
		}, func() {
			for i := range watched {
				if n, known := watched[i].usage.Used(); known {
					c.settled(watched[i].ask, n)
				}
			}
		})
	}
}

// settled settles one ask.
func (c *call) settled(a *ask, used int) {
	a.reserve.Settle(used)
	c.t.hooks.settled(c.request, a.limit.name, a.cost, used)
}

// watched is an ask of which a usage is found out.
type watched struct {
	ask   *ask
	usage Usage
}

// watchedOf keeps the ask as it is: the call may have another attempt.
func watchedOf(a *ask, u Usage) watched {
	own := *a
	return watched{&own, u}
}

// onEnd has a function called with each piece of a response's body as it is read, and another one, once, when the body
// ends, is closed or fails, or when the context ends.
func onEnd(ctx context.Context, r *http.Response, piece func([]byte), end func()) {
	w := &watchedBody{ReadCloser: r.Body, piece: piece, end: end}
	if ctx.Done() != nil {
		w.stop = context.AfterFunc(ctx, w.over)
	}
	r.Body = w
	if rw, ok := w.ReadCloser.(io.Writer); ok { // of an upgraded connection
		r.Body = struct {
			*watchedBody
			io.Writer
		}{w, rw}
	}
}

// A watchedBody is a response's body, unchanged.
type watchedBody struct {
	io.ReadCloser
	stop func() bool

	mu    sync.Mutex
	piece func([]byte) // nil: none, or it has ended
	end   func()
}

func (w *watchedBody) Read(p []byte) (n int, err error) {
	n, err = w.ReadCloser.Read(p)
	w.mu.Lock()
	if w.piece != nil && n > 0 {
		w.piece(p[:n])
	}
	w.mu.Unlock()
	if err != nil {
		w.over()
	}
	return n, err
}

func (w *watchedBody) Close() error {
	defer w.over()
	return w.ReadCloser.Close()
}

func (w *watchedBody) over() {
	w.mu.Lock()
	end := w.end
	w.end, w.piece = nil, nil
	w.mu.Unlock()
	if end == nil {
		return
	}
	if w.stop != nil {
		w.stop()
	}
	end()
}
