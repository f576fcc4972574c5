package llm

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
)

type flight struct {
	mu    sync.Mutex // while the bound is made, and while calls without one come and go
	out   atomic.Int32
	bound atomic.Pointer[bound]
}

// bound limits calls in flight after refusals without a time, as [New] says.
type bound struct {
	places *queue.Places
	before []*reserve.Reservation // of calls that were out when there was no bound

	mu       sync.Mutex
	n, most  int       // how many may be out; how many they grow to by acceptances
	event    time.Time // of the latest refusals that counted
	out      int       // then
	refused  int       // of these
	proven   int       // the most that were out when a call was sent, after the event, that was accepted
	row      int       // refusals without an acceptance between
	since    time.Time // when the row began
	accepted int       // since most grew
	rest     time.Duration
}

const (
	firstRest = time.Second
	lastRest  = 8 * time.Second
	notChance = 3 // in a row
)

type seat struct {
	place *reserve.Reservation // nil: there was no bound when it went
	level int                  // calls that were out when it went, it included
	taken bool
}

func (f *flight) enter(ctx context.Context, s *seat) error {
	*s = seat{}
	if b := f.bound.Load(); b != nil {
		place, err := b.places.ReserveWithin(ctx, 1, reserve.Forever)
		if err == nil {
			err = place.Wait(ctx)
		}
		if err != nil {
			return err
		}
		s.place = &place
	}
	f.mu.Lock()
	if s.place == nil && f.bound.Load() != nil {
		f.mu.Unlock()
		return f.enter(ctx, s) // it was made meanwhile
	}
	s.level, s.taken = int(f.out.Add(1)), true
	f.mu.Unlock()
	return nil
}

func (f *flight) leave(s *seat) {
	if !s.taken {
		return
	}
	s.taken = false
	f.mu.Lock()
	f.out.Add(-1)
	b := f.bound.Load()
	f.mu.Unlock()
	if s.place == nil {
		s.place = b.unbound()
	}
	if s.place != nil {
		s.place.Cancel()
	}
}

// unbound returns the place of a call sent before there was a bound; nil: none.
func (b *bound) unbound() (place *reserve.Reservation) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := len(b.before) - 1; last >= 0 {
		place, b.before = b.before[last], b.before[:last]
	}
	return place
}

func (f *flight) begin() *bound {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.bound.Load(); b != nil {
		return b
	}
	b := &bound{places: queue.NewPlaces(math.MaxInt), n: math.MaxInt, most: math.MaxInt}
	for range f.out.Load() {
		r, _ := b.places.ReserveWithin(context.Background(), 1, 0)
		b.before = append(b.before, &r)
	}
	f.bound.Store(b)
	return b
}

// refuse returns how long no call may go.
func (f *flight) refuse(sent, now time.Time, level int) (rest time.Duration) {
	b := f.begin()
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.event.IsZero() || sent.After(b.event)) && !b.happens(level, int(f.out.Load()), now) {
		return 0
	}
	b.refused++
	switch b.n = max(0, b.out-b.refused); {
	case b.n > 0:
		b.most = b.n
	case b.refused == b.out:
		b.most = b.out
		b.rest = min(max(firstRest, 2*b.rest), lastRest)
		rest = b.rest
	}
	b.places.Resize(b.n)
	return rest
}

// happens begins an event, unless the refusal counts as chance: see [New].
func (b *bound) happens(level, out int, now time.Time) bool {
	if b.row++; b.row == 1 {
		b.since = now
	}
	if (out < 2 || level <= b.proven) && b.rest == 0 && b.row < notChance {
		return false
	}
	b.event, b.out, b.refused, b.proven, b.row, b.accepted = now, out, 0, 0, 0, 0
	return true
}

func (b *bound) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n = max(1, b.n)
	b.places.Resize(b.n)
}

func (f *flight) accept(sent time.Time, level int) {
	b := f.bound.Load()
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if sent.After(b.since) {
		b.row = 0
	}
	if !sent.After(b.event) || b.most == math.MaxInt {
		return
	}
	b.proven, b.rest = max(b.proven, level), 0
	if b.accepted++; b.accepted >= 4*b.most {
		b.accepted, b.most = 0, b.most+1
	}
	b.n = min(b.n+1, b.most)
	b.places.Resize(b.n)
}
