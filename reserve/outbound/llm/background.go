package llm

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/nextfree/pace/internal/engine"
)

type waitingCall struct {
	account *account
	class   *class
	prompt  prompt
	charged count
	told    atomic.Bool
}

func (t *Transport) await(c *call, id string, charged count) {
	if id != "" {
		t.awaited.Set(id, &waitingCall{account: c.account, class: c.class, prompt: c.prompt, charged: charged})
	}
}

func (t *Transport) find(r *http.Request) *waitingCall {
	if r.Method != http.MethodGet {
		return nil
	}
	w, _ := t.awaited.Get(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	return w
}

func (w *waitingCall) finish(d *reading) {
	n, t := d.counter.count, w.account.of
	if !n.known || w.told.Swap(true) {
		return
	}
	w.class.told(&w.prompt, n)
	for k := range calls {
		if l := w.account.limiter(k); k.isTokens() && l != nil && t.settles {
			if more := k.of(n) - k.of(w.charged); more > 0 {
				(*engine.Limiter)(l).Charge(more)
			}
		}
	}
}

func (w *waitingCall) leave() {}
