package outbound

import (
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
)

type pausable interface{ PauseUntil(t time.Time) }

// stop lets nothing go before a time: queued calls keep their distances.
func (a *charge) stop(until time.Time) {
	a.state.stopped.Store(until.UnixNano())
	switch by := a.By.(type) {
	case *reserve.Limiter:
		(*engine.Limiter)(by).Stop(until)
	case bykey.Key:
		by.Stop(until)
	case pausable:
		by.PauseUntil(until)
	default:
		a.state.pause.PauseUntil(until)
	}
}

// pauseOf returns the limiter whose pause stops a limit as well; nil: none.
func (t *Transport) pauseOf(a *charge) *reserve.Limiter {
	if a.limit.upstream {
		return t.upstreams.all[a.key.(int)].pause
	}
	if _, ok := a.By.(pausable); ok || a.limit.places > 0 {
		return nil
	}
	return t.unlimited.Limiter()
}
