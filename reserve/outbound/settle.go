package outbound

import "github.com/nextfree/pace/reserve/outbound/internal/bodies"

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
				w = &watchedBody{attempt: a}
				w.usages = w.few[:0]
			}
			w.usages = append(w.usages, watched{*of, u})
		}
	}
	a.phase = idle
	if w != nil {
		r.Body = w.Watch(a.request.Context(), r.Body, w)
	}
}

type watched struct {
	charge charge
	usage  Usage
}

// A watchedBody shows its pieces to its usages.
type watchedBody struct {
	bodies.Watched
	attempt *attempt
	usages  []watched
	few     [few]watched // of usages
}

func (w *watchedBody) Show(piece []byte) {
	for i := range w.usages {
		_, _ = w.usages[i].usage.Write(piece)
	}
}

func (w *watchedBody) Last() {}

func (w *watchedBody) Over() {
	for i := range w.usages {
		a := &w.usages[i].charge
		if n, known := w.usages[i].usage.Used(); known {
			w.attempt.settled(a, n)
		} else {
			a.keep()
		}
	}
}
