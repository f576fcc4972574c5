package outbound

import (
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A serverClock finds how far the clock of a server without Date is ahead. "Nothing is left until t" is believed, for
// half a minute at first. If a call sent afterwards is accepted in another window before t, the clock is ahead by at
// least the time until t; at most by the rest of each window that a response names.
type serverClock struct {
	mu    sync.Mutex
	ends  time.Time // of the latest empty window, by the server's clock
	heard time.Time // first heard of; by the local clock
	sure  bool      // a window ended in time

	ahead       bool
	least, most time.Duration
}

const (
	// untried is the longest stop until the server's clock is known to be right.
	untried = 30 * time.Second
	// near is how precisely the end of a window must be known to wait for it.
	near = 4 * time.Second
	// offBy is how much too early a window may end: ends are in whole seconds.
	offBy = 1500 * time.Millisecond
)

func (k *serverClock) correct(l *reply.Limit, sent, heard time.Time, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left, ends := l.Ends, heard.Add(l.Ends)
	same := ends.Sub(k.ends).Abs() < time.Second
	if sent.After(k.heard) && !k.ends.IsZero() && !same && ends.After(k.ends) {
		early := k.ends.Sub(heard)
		switch {
		case early <= offBy:
			k.sure = true
		case !refused && !k.ahead:
			k.ahead, k.least, k.most = true, early, left
		case !refused:
			k.least = max(k.least, early)
		}
	}
	k.sure = k.sure || refused && same && heard.Sub(k.heard) >= untried/2
	if l.Left == 0 && !same {
		k.ends, k.heard = ends, heard
	}
	switch k.most = min(k.most, left); {
	case k.ahead && k.most < k.least-offBy: // one of the clocks was set
		k.ahead = false
	case k.ahead && k.most-k.least > near:
		l.Ahead(k.most)
	case k.ahead:
		l.Ahead((k.most + k.least) / 2)
	case !k.sure && l.Stop > untried:
		l.Stop = untried
	}
}
