package outbound

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// inFlight bounds how many requests there are at a time, for each key. A key without requests is
// not remembered.
type inFlight struct {
	n   int64
	key func(*http.Request) string

	mu   sync.Mutex
	keys map[string]*places
}

// places are those of a key.
type places struct {
	*semaphore.Weighted
	users int // that have one, or wait for one
}

// acquire waits for a place, and returns a function that gives it back, once however often it is
// called. F may be nil.
func (f *inFlight) acquire(ctx context.Context, r *http.Request) (release func(), err error) {
	if f == nil {
		return func() {}, nil
	}
	key := f.key(r)
	p := f.enter(key)
	if err := p.Acquire(ctx, 1); err != nil {
		f.leave(key, p)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		p.Release(1)
		f.leave(key, p)
	}), nil
}

func (f *inFlight) enter(key string) *places {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.keys[key]
	if p == nil {
		if f.keys == nil {
			f.keys = map[string]*places{}
		}
		p = &places{Weighted: semaphore.NewWeighted(f.n)}
		f.keys[key] = p
	}
	p.users++
	return p
}

func (f *inFlight) leave(key string, p *places) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(f.keys, key)
	}
}

// placed returns a response's body that gives its place back when it is closed, and not before:
// until then the server may still be at work on it.
func placed(body io.ReadCloser, release func()) io.ReadCloser {
	p := &placedBody{body, release}
	if w, ok := body.(io.Writer); ok { // of an upgraded connection
		return struct {
			*placedBody
			io.Writer
		}{p, w}
	}
	return p
}

type placedBody struct {
	io.ReadCloser
	release func()
}

func (p *placedBody) Close() error {
	defer p.release()
	return p.ReadCloser.Close()
}

// A budget is what retries may cost: a share of the requests.
type budget struct {
	share float64

	mu   sync.Mutex
	left float64
}

// What a budget begins with, so that a program's first requests may be sent again as well; and what
// it holds at most, so that a good day does not pay for a storm.
const (
	firstBudget = 10
	fullBudget  = 100
)

func newBudget(share float64) *budget { return &budget{share: share, left: firstBudget} }

// request counts a request. B may be nil.
func (b *budget) request() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = math.Min(b.left+b.share, fullBudget)
}

// retry takes what a retry costs, and reports whether it was there.
func (b *budget) retry() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
