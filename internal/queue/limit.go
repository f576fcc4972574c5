package queue

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/internal/variant"
	"github.com/nextfree/pace/reserve"
)

// A Limit is what a request asks of one limit.
type Limit struct {
	By      limit.Limit
	Permits int // 0: the request's own
	// Clip: the request asks for at most what the limit ever holds, and its caller charges the rest. Otherwise it gets
	// a *[reserve.SizeError].
	Clip bool
	// Own: only one class asks this limit. While its first request waits for it, other classes pass.
	Own bool
}

type Option struct {
	Limits []Limit
	Tier   int // lower ones are taken first, within Settings.Detour
}

// Limits returns what a request asks of a Reserver, by the parts of a reserve.All.
func Limits(by reserve.Reserver) (limits []Limit) {
	parts := allornothing.PartsOf(by)
	if len(parts) == 0 {
		return []Limit{{By: limit.Of(by)}}
	}
	for _, part := range parts {
		limits = append(limits, Limits(part)...)
	}
	return limits
}

// Unlimited returns the policy of unlimited limiters, which save up nothing: for pauses. A nil clock is the real one.
func Unlimited(clock clockwork.Clock) *reserve.Policy {
	var opts []reserve.Option
	if clock != nil {
		opts = append(opts, reserve.WithClock(clock))
	}
	v := variant.Variant{Package: "pace", Limiter: "a limiter without a limit", Curve: evenly}
	return reserve.Must(v.Policy(math.Inf(1), opts...))
}

func evenly(permitsPerSecond float64) *smooth.Curve {
	return &smooth.Curve{Rate: permitsPerSecond, Interval: smooth.Interval(permitsPerSecond), AtRate: evenly}
}

// blocks reports whether to ask the limit may block, or calls a function of the user's.
func (l *Limit) blocks() bool { return l.By.Traits().Blocks }

// local returns the limiter of this process, which answers under any lock, or nil.
func (l *Limit) local() *engine.Limiter { return (*engine.Limiter)(limit.Local(l.By)) }

// same can't tell a limit that may block from another.
func (l *Limit) same(other Limit) bool { return !l.blocks() && !other.blocks() && l.By == other.By }

func (l *Limit) permits(p *Place) int {
	if l.Permits > 0 {
		return l.Permits
	}
	return p.Permits
}

const unknown = reserve.Forever

// wait returns the wait of n permits behind others of the same request; 0 if it can't be asked, or only through a
// function of the user's.
func (l *Limit) wait(q *Queue, now int64, behind, n int) (d time.Duration, err error) {
	if by := l.local(); by != nil {
		var ahead iter.Seq[int]
		if behind > 0 {
			ahead = once(behind)
		}
		d, err = by.BehindAt(q.at(now), ahead, n)
	} else if by, ok := l.By.(*Places); ok {
		d = by.wait(q)
	}
	if most := tooMany(err); most > 0 && l.Clip {
		return l.wait(q, now, behind, most)
	}
	return d, err
}

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

func (l *Limit) reserve(ctx context.Context, n int, maxWait time.Duration, r *reserve.Reservation) (err error) {
	if by := l.local(); by != nil && l.Clip && n > 1 {
		if most := by.Outlook().Capacity; most >= 1 && float64(n) > most {
			n = int(most)
		}
	}
	*r, err = l.By.ReserveWithin(ctx, n, maxWait)
	if most := tooMany(err); most > 0 && l.Clip && most < n {
		return l.reserve(ctx, most, maxWait, r)
	}
	return err
}

func (l *Limit) tooLarge(p *Place) error {
	n := l.permits(p)
	if n == 1 || l.Clip {
		return nil
	}
	_, err := l.By.Peek(n)
	if most := tooMany(err); most > 0 {
		return &reserve.SizeError{Permits: n, Max: most}
	}
	return nil
}

// LimitName is the name of the first option's limit at which the place would wait for longest.
func (p *Place) LimitName() (name string) {
	longest := time.Duration(-1)
	for i := range p.Options[0].Limits {
		l := &p.Options[0].Limits[i]
		if wait, err := l.By.Peek(l.permits(p)); err == nil && wait > longest {
			longest, name = wait, l.By.Name()
		}
	}
	return name
}
