package stats

import (
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/shared"
)

// Limiter adds a limiter.
func (s *Set) Limiter(name string, l *reserve.Limiter) error {
	if l == nil {
		return s.wrong("the limiter "+name, nil, "a limiter")
	}
	l.Snapshot() // from now on it counts all refusals
	return s.add(source{kind: "a limiter", name: name, samples: func(yield func(*Family, float64, ...string)) {
		now := l.Snapshot()
		yield(rate, now.Rate)
		yield(capacity, now.Capacity)
		yield(level, now.Level)
		yield(debt, max(0, -now.Level))
		yield(wait, now.Wait.Seconds())
		yield(paused, pause(now))
		yield(waiting, float64(now.Waiting))
		yield(granted, float64(now.Granted))
		yield(refused, float64(now.Refused))
		yield(returned, float64(now.GivenBack))
		yield(taken, float64(now.Granted-now.GivenBack))
		yield(waited, float64(uint64(now.Waited))/1e9) // it begins again at 0, as the counts do
	}})
}

// pause returns for how long a limiter is paused, by the real clock.
func pause(s reserve.Snapshot) float64 {
	if s.PausedUntil.IsZero() {
		return 0
	}
	return max(0, time.Until(s.PausedUntil).Seconds())
}

// Inbound adds a middleware.
func (s *Set) Inbound(name string, m *inbound.Middleware) error {
	if m == nil {
		return s.wrong("the middleware "+name, nil, "a middleware")
	}
	waits := func() Histogram { return queueWaits(m.Stats().Waits) }
	samples := func(yield func(*Family, float64, ...string)) {
		now := m.Stats()
		yield(allowed, float64(now.Allowed))
		yield(queued, float64(now.Queued))
		yield(queue, float64(now.Waiting))
		yield(queueWaited, now.Waits.Sum.Seconds())
		yield(gone, float64(now.Gone))
		yield(unauthorized, float64(now.Unauthorized))
		yield(delayed, float64(now.Delayed))
		for _, t := range now.Tiers {
			yield(tiers, float64(t.Refused), t.Name, "refused")
			yield(tiers, float64(t.WouldRefuse), t.Name, "would_refuse")
			yield(tiers, float64(t.Failed), t.Name, "failed")
			yield(crowded, float64(t.Shared), t.Name)
		}
	}
	return s.add(source{kind: "a middleware", name: name, waits: waits, samples: samples})
}

// queueWaits turns a middleware's histogram into one that exporters show.
func queueWaits(of inbound.Histogram) Histogram {
	h := Histogram{Family: QueueWaits, Sum: of.Sum.Seconds(), UpTo: make(map[float64]uint64, len(of.Bounds))}
	for i, n := range of.Counts {
		h.Count += n
		if i < len(of.Bounds) {
			h.UpTo[of.Bounds[i].Seconds()] = h.Count
		}
	}
	return h
}

// Shared adds a limiter that is shared through Redis.
func (s *Set) Shared(name string, l *shared.Limiter) error {
	if l == nil {
		return s.wrong("the shared limiter "+name, nil, "a limiter")
	}
	return s.add(source{kind: "a shared limiter", name: name, samples: func(yield func(*Family, float64, ...string)) {
		yield(fallbacks, float64(l.Fallbacks()))
	}})
}
