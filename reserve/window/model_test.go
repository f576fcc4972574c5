package window

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/smooth"
)

// A model is the rule, spelled out: a list of all that was granted, and every stretch
// looked at.
type model struct {
	size   int
	per    int64
	grants []grant
}

type grant struct {
	at      int64
	permits int
}

// held counts the permits in (end-per, end].
func (m *model) held(end int64) (sum int) {
	for _, g := range m.grants {
		if end-m.per < g.at && g.at <= end {
			sum += g.permits
		}
	}
	return sum
}

// fits tries every stretch that holds t: whole nanoseconds, all of them.
func (m *model) fits(t int64, permits int) bool {
	for end := t; end < t+max(1, m.per); end++ {
		if m.per > 0 && m.held(end)+permits > m.size {
			return false
		}
	}
	return true
}

// earliest tries every nanosecond from now on.
func (m *model) earliest(now int64, permits int) int64 {
	for t := now; ; t++ {
		if m.fits(t, permits) {
			return t
		}
	}
}

// forget drops what has left the window before its length changes.
func (m *model) forget(now int64) {
	kept := m.grants[:0]
	for _, g := range m.grants {
		if g.at > now-max(1, m.per) {
			kept = append(kept, g)
		}
	}
	m.grants = kept
}

// take takes permits of a time away.
func (m *model) take(at int64, permits int) {
	for i := range m.grants {
		if g := &m.grants[i]; g.at == at {
			part := min(permits, g.permits)
			g.permits -= part
			permits -= part
		}
	}
}

// A run is a ledger and its model, and what can still be given back.
type run struct {
	*testing.T
	ledger  *ledger
	model   model
	now     int64
	slots   []smooth.Slot
	charged bool // at any time: then the rule may be broken, though never by a grant
}

func newRun(t *testing.T, size int, per int64) *run {
	return &run{T: t, ledger: newLedger(size, per, float64(size)/float64(per)*1e9), model: model{size: size, per: per}}
}

// reserve compares where a request goes.
func (r *run) reserve(permits int, maxWait int64) {
	latest := r.now + maxWait
	slot, ok := r.ledger.Reserve(r.now, permits, latest)
	if permits > r.model.size {
		require.False(r, ok, "%d of %d", permits, r.model.size)
		return
	}
	want := r.model.earliest(r.now, permits)
	require.Equal(r, want, slot.Ready, "at %d: Reserve(%d) with %d in %d, %v", r.now, permits, r.model.size, r.model.per, r.model.grants)
	require.Equal(r, want <= latest, ok)
	if ok {
		r.model.grants = append(r.model.grants, grant{want, permits})
		r.slots = append(r.slots, slot)
	}
}

func (r *run) takeNow(permits int) {
	want := permits <= r.model.size && r.model.fits(r.now, permits)
	require.Equal(r, want, r.ledger.Take(r.now, permits), "at %d: Take(%d) with %d in %d, %v", r.now, permits, r.model.size, r.model.per, r.model.grants)
	if want {
		r.model.grants = append(r.model.grants, grant{r.now, permits})
	}
}

// giveBack gives a part of a slot back, 1 to all of it.
func (r *run) giveBack(which, part int) {
	if len(r.slots) == 0 {
		return
	}
	which %= len(r.slots)
	slot := r.slots[which]
	r.slots = append(r.slots[:which], r.slots[which+1:]...)
	permits := 1 + part%slot.Permits
	r.ledger.Return(r.now, slot, permits, slot.Ready <= r.now)
	r.model.take(slot.Ready, permits)
}

func (r *run) charge(permits int) {
	r.charged = true
	r.ledger.Charge(r.now, permits)
	r.model.grants = append(r.model.grants, grant{r.now, permits})
}

// setPer sets a rate that gives windows of that length.
func (r *run) setPer(per int64) {
	r.model.forget(r.now)
	r.model.per = per
	rate := float64(r.model.size) / float64(per) * 1e9 // +Inf for 0
	r.ledger.SetRate(r.now, rate)
	require.Equal(r, per, r.ledger.per)
	require.Equal(r, rate, r.ledger.Rate())
}

// check compares what can be seen, and, as long as nothing changed the rule, that it holds.
func (r *run) check(ruled bool) {
	require.Equal(r, r.model.earliest(r.now, 1), r.ledger.NextFree(r.now), "at %d: %v", r.now, r.model.grants)
	free := 0
	for free < r.model.size && r.model.fits(r.now, free+1) {
		free++
	}
	require.Equal(r, float64(free), r.ledger.Stored(r.now))
	if !ruled || r.charged {
		return
	}
	for _, g := range r.model.grants { // each stretch is fullest where it ends with a grant
		require.LessOrEqual(r, r.model.held(g.at), r.model.size, "until %d: %v", g.at, r.model.grants)
	}
}

// play plays a script: a byte for what to do, and one for how much.
func play(t *testing.T, script []byte) {
	next := func() (b int) {
		if len(script) > 0 {
			b = int(script[0])
			script = script[1:]
		}
		return b
	}
	r := newRun(t, 1+next()%7, int64(1+next()%12))
	ruled := true
	for len(script) > 0 {
		what, much := next(), next()
		switch what % 16 {
		case 0, 1, 2, 3:
			r.reserve(1+much%(r.model.size+1), never/2)
		case 4, 5:
			r.reserve(1, never/2)
		case 6:
			r.reserve(1+much%r.model.size, int64(much%17))
		case 7, 8:
			r.takeNow(1 + much%(r.model.size+1))
		case 9, 10, 11:
			r.giveBack(much, next())
		case 12, 13:
			r.now += int64(much % 8)
		case 14:
			if much < 100 {
				r.now += int64(much)
			} else if much < 140 {
				r.charge(1 + much%(2*r.model.size))
			}
		case 15:
			if much < 40 {
				ruled = ruled && int64(much%14) <= r.model.per // a longer window makes no promise backwards
				r.setPer(int64(much % 14))
			}
		}
		r.check(ruled)
	}
}
