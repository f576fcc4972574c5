package shared

import (
	"context"
	"time"

	"github.com/nextfree/pace/reserve"
)

func (l *Limiter) Rate() float64 { return l.terms.Load().curve.Rate }

// SetRate changes the rate of this process's requests, from now on. Promised times stay. Stored permits stay with a
// capacity in permits, and otherwise scale with the capacity. It returns a *[reserve.ValueError] for a rate that is not
// positive, and a *[reserve.OptionError] for a window or a calendar. After any error the old rate stays.
func (l *Limiter) SetRate(ctx context.Context, permitsPerSecond float64) error {
	if !(permitsPerSecond > 0) {
		return valueError("rate", permitsPerSecond, "a positive number of permits per second")
	}
	t := l.terms.Load()
	if t.other != nil {
		return &reserve.OptionError{Package: "shared", Option: "SetRate", Limiter: t.other.Terms().Limiter}
	}
	t, err := newTerms(t.curve.AtRate(permitsPerSecond), t.upfront)
	if err != nil {
		return err
	}
	// Until now the store filled at the old rate.
	if err := l.change(ctx, change{terms: t}); err != nil {
		return err
	}
	l.busy.Store(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alone != nil && l.mode == local {
		return l.alone.SetRate(permitsPerSecond * l.share)
	}
	return nil
}

// Stored returns how many permits are stored now.
func (l *Limiter) Stored(ctx context.Context) (float64, error) {
	o, err := l.look(ctx)
	return o.stored, err
}

// NextFree returns when a request for one permit, made now, would be granted.
func (l *Limiter) NextFree(ctx context.Context) (time.Time, error) {
	o, err := l.look(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(o.wait)), nil
}

func (l *Limiter) look(ctx context.Context) (outlook, error) {
	r := looks()
	if err := l.do(ctx, r); err != nil {
		return outlook{}, err
	}
	return r.after, nil
}

// PauseUntil keeps every process from getting or storing permits before t, by this process's clock. Earlier promises
// stay. An earlier t than that of a pause changes nothing. In a [Store] a pause is at most 36 years.
func (l *Limiter) PauseUntil(ctx context.Context, t time.Time) error {
	return l.pauseUntil(ctx, t, false)
}

// pauseUntil stops the clock, or only what is granted: permits used before leave a window during a stop.
func (l *Limiter) pauseUntil(ctx context.Context, t time.Time, stop bool) error {
	if time.Until(t) <= 0 {
		return nil
	}
	return l.change(ctx, change{pause: max(0, int64(time.Until(t))), stop: stop})
}

// Resume ends a pause now, whichever process began it. Times promised during the pause stay. A pause for whose end
// stored permits were promised goes on, or they would be sold twice.
func (l *Limiter) Resume(ctx context.Context) error {
	return l.change(ctx, change{pause: resume})
}
