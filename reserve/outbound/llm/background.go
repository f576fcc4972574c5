package llm

import (
	"net/http"
	"strings"
	"sync"

	"github.com/nextfree/pace/reserve/internal/engine"
)

type awaited struct {
	mu    sync.Mutex
	calls map[string]*waitingCall
}

type waitingCall struct {
	of      *awaited
	id      string
	account *account
	class   *class
	prompt  prompt
	charged count
}

const maxAwaited = 4096

func (t *Transport) await(c *call, id string) {
	if id == "" {
		return
	}
	w := &waitingCall{of: &t.awaited, id: id, account: c.account, class: c.class, prompt: c.prompt}
	w.charged.input, w.charged.output = c.class.guess(&c.prompt)
	a := &t.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[string]*waitingCall{}
	}
	for other := range a.calls { // any
		if len(a.calls) < maxAwaited {
			break
		}
		delete(a.calls, other)
	}
	a.calls[id] = w
}

func (a *awaited) find(r *http.Request) *waitingCall {
	if r.Method != http.MethodGet {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.calls) == 0 {
		return nil
	}
	return a.calls[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
}

func (w *waitingCall) finish(d *reading) {
	if !d.counter.count.known {
		return
	}
	w.of.mu.Lock()
	first := w.of.calls[w.id] == w
	delete(w.of.calls, w.id)
	w.of.mu.Unlock()
	if !first {
		return
	}
	n, a := d.counter.count, w.account
	w.class.told(&w.prompt, n)
	for k := range calls {
		if l := a.limiter(k); k.isTokens() && l != nil && a.isActive(k) && a.of.settles {
			if more := k.of(n.input, n.output) - k.of(w.charged.input, w.charged.output); more > 0 {
				(*engine.Limiter)(l).Charge(more)
			}
		}
	}
}

func (w *waitingCall) leave() {}
