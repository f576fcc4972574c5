package llm

import (
	"net/http"
	"strings"
	"sync"

	"github.com/nextfree/pace/internal/engine"
)

type awaited struct {
	mu    sync.Mutex
	calls map[string]*waitingCall
}

type waitingCall struct {
	id      string
	account *account
	class   *class
	prompt  prompt
	charged count
}

const maxAwaited = 4096

func (t *Transport) await(c *call, id string, charged count) {
	if id == "" {
		return
	}
	a := &t.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	for other := range a.calls { // any
		if len(a.calls) < maxAwaited {
			break
		}
		delete(a.calls, other)
	}
	a.calls[id] = &waitingCall{id, c.account, c.class, c.prompt, charged}
}

func (a *awaited) find(r *http.Request) *waitingCall {
	if r.Method != http.MethodGet {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
}

func (w *waitingCall) finish(d *reading) {
	n, t := d.counter.count, w.account.of
	if !n.known {
		return
	}
	t.awaited.mu.Lock()
	defer t.awaited.mu.Unlock()
	if t.awaited.calls[w.id] != w { // it was told before
		return
	}
	delete(t.awaited.calls, w.id)
	w.class.told(&w.prompt, n)
	for k := range calls {
		if l := w.account.limiter(k); k.isTokens() && l != nil && w.account.isActive(k) && t.settles {
			if more := k.of(n) - k.of(w.charged); more > 0 {
				(*engine.Limiter)(l).Charge(more)
			}
		}
	}
}

func (w *waitingCall) leave() {}
