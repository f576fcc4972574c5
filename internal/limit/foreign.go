package limit

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
)

// Mute answers nothing, for types to embed.
type Mute struct{}

func (Mute) Peek(int) (time.Duration, error) { return 0, nil }
func (Mute) Outlook() (engine.Outlook, bool) { return engine.Outlook{}, false }
func (Mute) Rate() float64                   { return 0 }
func (Mute) Tune(float64)                    {}
func (Mute) Stop(time.Time)                  {}
func (Mute) Said(float64, time.Time)         {}
func (Mute) Name() string                    { return "" }
func (Mute) Version() uint64                 { return 0 }

// A Base is a Limit that knows nothing but how to reserve, for types to embed.
type Base struct {
	Mute
	reserve.Reserver
}

func (b Base) Take(ctx context.Context, n int, maxWait time.Duration, _ bool) (Taken, error) {
	return taken(ctx, b.Reserver, n, maxWait)
}

func (Base) Traits() Traits { return Traits{Blocks: true, Silent: true} }

func taken(ctx context.Context, by reserve.Reserver, n int, maxWait time.Duration) (t Taken, err error) {
	t.Reservation, err = by.ReserveWithin(ctx, n, maxWait)
	return
}

// A foreign limit is a Reserver of the user's, which may have methods of a reserve.Limiter.
type foreign struct{ Base }

type (
	rater  interface{ Rate() float64 }
	storer interface{ Stored() float64 }
	freer  interface{ NextFree() time.Time }
	pauser interface{ PauseUntil(t time.Time) }
	peeker interface {
		Peek(n int) (time.Duration, error)
	}
	retimer interface{ Retime(float64) error }
	setter  interface{ SetRate(float64) error }
	namer   interface{ Name() string }
)

func (f foreign) Peek(n int) (time.Duration, error) {
	if by, ok := f.Reserver.(peeker); ok {
		return by.Peek(n)
	}
	return 0, nil
}

func (f foreign) Outlook() (o engine.Outlook, known bool) {
	if by, ok := f.Reserver.(freer); ok {
		o.Wait, known = max(0, time.Until(by.NextFree())), true
	}
	if by, ok := f.Reserver.(storer); ok {
		o.Stored = by.Stored()
	}
	if o.Rate = f.Rate(); o.Rate == 0 {
		return o, false
	}
	return o, known
}

func (f foreign) Rate() float64 {
	if by, ok := f.Reserver.(rater); ok {
		return by.Rate()
	}
	return 0
}

func (f foreign) Tune(permitsPerSecond float64) {
	switch by := f.Reserver.(type) {
	case retimer:
		_ = by.Retime(permitsPerSecond) // fails for no positive number
	case setter:
		_ = by.SetRate(permitsPerSecond)
	}
}

func (f foreign) Stop(t time.Time) {
	if by, ok := f.Reserver.(pauser); ok {
		by.PauseUntil(t)
	}
}

func (f foreign) Name() string {
	if by, ok := f.Reserver.(namer); ok {
		return by.Name()
	}
	return ""
}

func (f foreign) Traits() Traits {
	t := Traits{Blocks: true}
	_, rates := f.Reserver.(rater)
	_, sets := f.Reserver.(setter)
	_, retimes := f.Reserver.(retimer)
	_, tells := f.Reserver.(freer)
	_, t.Stops = f.Reserver.(pauser)
	t.Silent = !tells || !rates
	t.Tunable = rates && (sets || retimes)
	return t
}
