package inbound

import (
	"sync/atomic"
	"time"
)

// Stats count requests that have a cost and that [WithSkip] does not let pass.
type Stats struct {
	Allowed      uint64 // requests that passed all tiers
	Queued       uint64 // of those and of Gone: requests that waited
	Waiting      int    // requests that wait now
	Gone         uint64 // requests whose client went away, or whose context ended, before they were served or answered
	Unauthorized uint64 // requests that were answered with 401
	Delayed      uint64 // refusals that were delayed by the tarpit
	Waits        Histogram
	Tiers        []TierStats
}

// TierStats count the requests that a tier did not simply allow.
type TierStats struct {
	Name        string
	Refused     uint64 // requests that ended here
	WouldRefuse uint64 // requests that would have ended here, but for DryRun
	// Shared counts requests of a PerKey tier, in all its middlewares, whose keys shared a limiter for lack of room.
	Shared uint64
	Failed uint64 // requests for which the limiter or the key function failed, open or closed
}

// A Histogram counts ended waits in the queue by their length.
type Histogram struct {
	Bounds []time.Duration // 1 ms to 60 s
	Counts []uint64        // by the first of Bounds that the wait does not exceed; the last one counts longer waits
	Sum    time.Duration
}

var bounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

type histogram struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) snapshot() Histogram {
	s := Histogram{Bounds: append([]time.Duration(nil), bounds[:]...), Counts: make([]uint64, len(h.counts))}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	s.Sum = time.Duration(h.sum.Load())
	return s
}

type counters struct{ refused, wouldRefuse, failed atomic.Uint64 }

func (m *Middleware) Stats() Stats {
	s := Stats{
		Allowed:      m.allowed.Load(),
		Queued:       m.queue.queued.Load(),
		Waiting:      m.queue.length(),
		Gone:         m.gone.Load(),
		Unauthorized: m.unauthorized.Load(),
		Delayed:      m.everDelayed.Load(),
		Waits:        m.queue.waits.snapshot(),
		Tiers:        make([]TierStats, len(m.tiers)),
	}
	for i := range m.tiers {
		c := &m.counts[i]
		s.Tiers[i] = TierStats{
			Name:        m.tiers[i].name,
			Refused:     c.refused.Load(),
			WouldRefuse: c.wouldRefuse.Load(),
			Failed:      c.failed.Load(),
		}
		if clients := m.tiers[i].clients; clients != nil {
			s.Tiers[i].Shared = clients.shared.Load()
		}
	}
	return s
}
