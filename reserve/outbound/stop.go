package outbound

import (
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/adapt"
)

// stop lets nothing go before a time: queued calls keep their distances. No later stop makes it shorter.
func (a *charge) stop(until time.Time) {
	extend(&a.state.stopped, until)
	if !a.of.Traits().Stops {
		a.state.pause.PauseUntil(until) // before the limit's, which may take a while
	}
	a.of.Stop(until)
}

func extend(end *atomic.Int64, until time.Time) {
	for {
		before := end.Load()
		if until.UnixNano() <= before || end.CompareAndSwap(before, until.UnixNano()) {
			return
		}
	}
}

// stopAll stops all calls of an account, also those whose limit becomes known meanwhile.
func (l *learned) stopAll(a *charge, until time.Time) {
	if a.limit == &l.whole {
		extend(&l.namesOf(a.key.(bucket).account).stopped, until)
	}
}

// restop stops the limiter that a limit has for a key by now, if the key is stopped.
func (a *charge) restop(now time.Time) {
	if until := a.state.stop(now); !until.IsZero() {
		a.stop(until)
	}
}

// holdBlocked is the time between calls to a blocked key, unless one is refused before.
const holdBlocked = time.Second

// blocked counts a refusal without a time, and returns for how long no call should go; 0: not blocked.
func (l *lesson) blocked() (wait time.Duration) {
	s := &l.said
	if s.Told && s.After > 0 || l.charges.wants() > 0 {
		return 0
	}
	for a := range l.charges.all {
		if block := &a.state.block; l.charges.blamed(a, s) {
			block.CompareAndSwap(nil, new(adapt.Block))
			wait = max(wait, block.Load().Refused(l.of.heard, l.of.sent, s.Status >= 500))
		}
	}
	return wait
}

// emptied counts refusals in a row that say that nothing is left, and not until when. Those of calls that were out
// together are one.
func (l *lesson) emptied() (before int) {
	s := &l.said
	for a := range l.charges.all {
		if state := a.state; s.Empty && l.charges.blamed(a, s) {
			if l.of.sent.UnixNano() >= state.stopped.Load() {
				state.emptied.Add(1)
			}
			before = max(before, int(state.emptied.Load())-1)
		}
	}
	return before
}

// unblock ends the blocks of an accepted call's limits, which then avoid the rate that led to it.
func (l *lesson) unblock() {
	for a := range l.charges.all {
		block := a.state.block.Load()
		if block == nil {
			continue
		}
		lasted := block.Accepted(l.of.heard, l.of.sent)
		switch {
		case lasted == 0:
		case a.rate != nil:
			a.rate.change(func(rate *adapt.Rate) { rate.Blocked(l.of.heard, lasted) })
		default:
			l.of.t.believes(a, func(told *adapt.Told) { told.Blocked(l.of.heard, lasted) })
		}
	}
}

func (a *charge) holdBlock(sent time.Time) {
	if block := a.state.block.Load(); block != nil && block.On() {
		a.stop(sent.Add(holdBlocked))
	}
}
