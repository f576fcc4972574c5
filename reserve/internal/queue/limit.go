package queue

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// A Limit is what a request asks of one limit.
type Limit struct {
	By      reserve.Reserver
	Permits int // 0: the request's own
	// Clip: the request asks for at most what the limit ever holds, and its caller charges the rest. Otherwise it gets
	// a *[reserve.SizeError].
	Clip bool
	// Pause stops By: while it is paused, nothing is reserved there. May be nil.
	Pause *reserve.Limiter
	// Own: only one group asks this limit. While its first request waits for it, other groups pass.
	Own bool
}

// An Option is a way to serve a request: a member of a pool, an upstream, a deployment.
type Option struct {
	Limits []Limit
	Tier   int // lower ones are taken first, within Settings.Detour
}

// Limits returns what a request asks of a Reserver, each part of a reserve.All by itself.
func Limits(by reserve.Reserver) (limits []Limit) {
	parts := engine.PartsOf(by)
	if len(parts) == 0 {
		return []Limit{{By: by}}
	}
	for _, part := range parts {
		limits = append(limits, Limits(part)...)
	}
	return limits
}

type kind uint8

const (
	foreign  kind = iota // nothing: it may block
	distant              // it is shared between processes: to reserve and to cancel takes a while
	local                // a *reserve.Limiter
	keyed                // a key's limiter
	inFlight             // *Places
)

func kindOf(by reserve.Reserver) kind {
	switch by.(type) {
	case *reserve.Limiter:
		return local
	case bykey.Key:
		return keyed
	case *Places:
		return inFlight
	case interface {
		Stored(context.Context) (float64, error)
	}:
		return distant
	}
	return foreign
}

// same can't tell a user's Reserver from another.
func (l *Limit) same(other Limit) bool {
	switch kindOf(l.By) {
	case local, inFlight:
		return l.By == other.By
	}
	return false
}

func (l *Limit) permits(p *Place) int {
	if l.Permits > 0 {
		return l.Permits
	}
	return p.Permits
}

// unknown is a wait that nobody can know.
const unknown = reserve.Forever

// wait returns n permits' wait; 0 if By can't be asked.
func (l *Limit) wait(n int) (d time.Duration, err error) {
	switch by := l.By.(type) {
	case *reserve.Limiter:
		d, err = by.Peek(n)
	case bykey.Key:
		d, err = by.Peek(n)
	case *Places:
		d = by.wait()
	}
	if most := tooMany(err); most > 0 && l.Clip {
		return l.wait(most)
	}
	return max(d, l.paused()), err
}

// known is wait without a function of the user's.
func (l *Limit) known(n int) (time.Duration, error) {
	if kindOf(l.By) == keyed {
		return l.paused(), nil
	}
	return l.wait(n)
}

func (l *Limit) paused() time.Duration {
	if l.Pause == nil {
		return 0
	}
	d, _ := l.Pause.Peek(1)
	return d
}

// tooMany returns a SizeError's Max, or 0.
func tooMany(err error) int {
	if err == nil {
		return 0 // without an allocation
	}
	var size *reserve.SizeError
	if errors.As(err, &size) {
		return size.Max
	}
	return 0
}

// reserve waits for a pause's end instead: permits bought now would be lost.
func (l *Limit) reserve(ctx context.Context, n int, maxWait time.Duration, r *reserve.Reservation) (paused bool, err error) {
	if l.paused() > 0 {
		*r, err = l.Pause.ReserveWithin(ctx, 1, maxWait)
		return true, err
	}
	if by, ok := l.By.(*reserve.Limiter); ok { // what is handed on before it goes does not count as granted
		own := (*engine.Limiter)(by)
		if c := 0.0; l.Clip && n > 1 {
			if c = own.Outlook().Capacity; c >= 1 && float64(n) > c {
				n = int(c)
			}
		}
		err = own.ReserveUncounted(ctx, n, maxWait, (*engine.Reservation)(r))
	} else {
		*r, err = l.By.ReserveWithin(ctx, n, maxWait)
	}
	if most := tooMany(err); most > 0 && l.Clip && most < n {
		return l.reserve(ctx, most, maxWait, r)
	}
	return false, err
}

// rate returns permits per second; 0: unknown or no limit.
func (l *Limit) rate() float64 {
	if by, ok := l.By.(interface{ Rate() float64 }); ok {
		if r := by.Rate(); r < math.Inf(1) {
			return r
		}
	}
	return 0
}

// paidLater reports whether a request's time does not depend on its size.
func (l *Limit) paidLater() bool {
	by, ok := l.By.(*reserve.Limiter)
	if !ok {
		return false
	}
	one, err := by.Peek(1)
	all, err2 := by.Peek(math.MaxInt32)
	return err == nil && err2 == nil && all <= one // time passes meanwhile
}
