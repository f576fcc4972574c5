package window

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/smooth"
)

// A model is the rule, spelled out: a list of all that was ever asked, and a clock that is
// moved on by one nanosecond at a time. To know what is to come it is copied, and the copy moved on.
type model struct {
	now, until int64 // the limiter's clock, and the end of the pause
	clock      int64 // the window's, which stands still during pauses
	stopped    int64 // the end of a stop, during which it does not
	size       int
	per        int64
	out        int64 // what went up to this time of the window's clock had left it when it was changed
	asked      []ask
}

type ask struct {
	permits   int // that are kept
	charge    bool
	latest    int64 // the window's clock: when it goes at the latest, by a rule of before
	gone      bool
	at, clock int64 // when it went; its use may end later
	begun     bool  // its use has begun
	out       bool  // and is not over
}

// held counts the permits that went in the stretch of per up to now.
func (m *model) held() (sum int) {
	for _, a := range m.asked {
		if a.gone && (a.out && m.per > 0 || m.clock-m.per < a.clock && a.clock > m.out) {
			sum += a.permits
		}
	}
	return sum
}

// goes reports whether a request that is first in the queue goes now.
func (m *model) goes(a ask) bool {
	if a.charge || a.permits == 0 {
		return true
	}
	held := m.held()
	return m.now >= m.until && m.now >= m.stopped && (held == 0 || held+a.permits <= m.size || m.clock >= a.latest)
}

// serve lets those go that may go now.
func (m *model) serve() {
	for i := range m.asked {
		if a := &m.asked[i]; !a.gone {
			if !m.goes(*a) {
				return
			}
			a.gone, a.at, a.clock = true, max(m.now, m.until), m.clock
		}
	}
}

// tick moves the clock on.
func (m *model) tick() {
	if m.now >= m.until {
		m.clock++
	}
	m.now++
	m.serve()
}

func (m *model) waiting() bool {
	return slices.ContainsFunc(m.asked, func(a ask) bool { return !a.gone && a.permits > 0 })
}

func (m *model) ask(permits int, charge bool) {
	m.asked = append(m.asked, ask{permits: permits, charge: charge, latest: never})
}

// times returns when each goes, if one more asks now and nothing else happens.
func (m *model) times(permits int) (at []int64) {
	for _, a := range m.future(permits) {
		at = append(at, a.at)
	}
	return at
}

func (m *model) future(permits int) []ask {
	future := *m
	future.asked = slices.Clone(m.asked)
	for i := range future.asked {
		if a := &future.asked[i]; a.out {
			a.out, a.clock = false, m.clock
		}
	}
	future.ask(permits, false)
	for future.serve(); future.waiting(); {
		future.tick()
	}
	return future.asked
}

// settle keeps so many permits of the i-th request.
func (m *model) settle(i, kept int) {
	m.asked[i].permits = kept
	m.serve()
}

func (m *model) pause(until int64) {
	m.until = max(m.until, until)
}

func (m *model) resume() {
	m.until, m.stopped = min(m.until, m.now), min(m.stopped, m.now)
	m.serve()
}

// change puts another rule in place: waiting requests go no later than was promised; retime says that they go by the
// new rule.
func (m *model) change(size int, per int64, retime bool) {
	future := m.future(1)
	m.out = max(m.out, m.clock-max(1, m.per))
	m.size, m.per = size, per
	for i := range m.asked {
		if a := &m.asked[i]; retime || m.using() {
			a.latest = never
		} else {
			a.latest = min(a.latest, future[i].clock)
		}
	}
	m.serve()
}

func (m *model) using() bool {
	return slices.ContainsFunc(m.asked, func(a ask) bool { return a.out })
}

// release: what was promised did not know what is in use.
func (m *model) release() {
	for i := range m.asked {
		m.asked[i].latest = never
	}
}

// A run is a ledger and its model, and what can still be given back.
type run struct {
	*testing.T
	ledger *ledger
	model  model
	slots  []smooth.Slot // of each that was asked; of one without a slot, of no permits
	told   []int64       // the last times that the ledger gave
	open   []int         // the indices of slots that were not settled
	later  bool          // since the last comparison, promised times may have become later
}

func newRun(t *testing.T, size int, per int64) *run {
	return &run{
		T: t, ledger: newLedger(0, size, per, float64(size)/float64(per)*1e9),
		model: model{until: 0, size: size, per: per, out: -1000},
	}
}

// asked notes a request that both have promised.
func (r *run) asked(slot smooth.Slot, at int64, charge bool, permits int) {
	r.model.ask(permits, charge)
	r.model.serve()
	if slot.Permits > 0 {
		r.open = append(r.open, len(r.slots))
	}
	r.slots = append(r.slots, slot)
	r.told = append(r.told, at)
}

// reserve compares when a request goes.
func (r *run) reserve(permits int, maxWait int64) {
	latest := r.model.now + maxWait
	slot, ready, ok := r.ledger.Reserve(r.model.now, permits, latest)
	if permits > r.model.size {
		require.False(r, ok, "%d of %d", permits, r.model.size)
		return
	}
	times := r.model.times(permits)
	want := times[len(times)-1]
	require.Equal(r, want, ready, "at %d: Reserve(%d) in %+v", r.model.now, permits, r.model)
	require.Equal(r, want <= latest, ok)
	if ok {
		require.Equal(r, permits, slot.Permits)
		r.asked(slot, ready, false, permits)
	}
}

func (r *run) take(permits int) {
	times := r.model.times(permits)
	want := permits <= r.model.size && times[len(times)-1] == r.model.now
	require.Equal(r, want, r.ledger.Take(r.model.now, permits), "at %d: Take(%d) in %+v", r.model.now, permits, r.model)
	if want {
		r.asked(smooth.Slot{}, 0, false, permits)
	}
}

// takeUpTo compares how many are taken: any number at a rate of +Inf.
func (r *run) takeUpTo(permits int) {
	want := 0
	if !r.model.waiting() && r.model.now >= max(r.model.until, r.model.stopped) {
		want = min(permits, max(0, r.model.size-r.model.held()))
		if r.model.per == 0 {
			want = permits
		}
	}
	require.Equal(r, want, r.ledger.TakeUpTo(r.model.now, permits), "at %d: %+v", r.model.now, r.model)
	if want > 0 && r.model.per > 0 {
		r.asked(smooth.Slot{}, 0, false, want)
	}
}

func (r *run) charge(permits int) {
	r.ledger.Charge(r.model.now, permits)
	r.asked(smooth.Slot{}, 0, true, permits)
}

// giveBack settles one at less.
func (r *run) giveBack(which, kept int) {
	if len(r.open) == 0 {
		return
	}
	which %= len(r.open)
	i := r.open[which]
	kept %= r.slots[i].Permits
	if r.model.asked[i].out && kept > 0 {
		r.end(which)
	}
	r.open = slices.Delete(r.open, which, which+1)
	r.later = r.later || r.model.asked[i].out
	r.model.asked[i].out = false
	r.ledger.Return(r.model.now, r.slots[i], kept)
	r.model.settle(i, kept)
	r.slots[i].Permits = kept // of 0, its time is not asked for any more
}

func (r *run) begin(which int) {
	if len(r.open) == 0 {
		return
	}
	i := r.open[which%len(r.open)]
	r.slots[i] = r.ledger.Begin(r.model.now, r.slots[i])
	if a := &r.model.asked[i]; a.gone && !a.begun {
		a.begun, a.out = true, true
		r.later = true
		r.model.release()
	}
}

func (r *run) end(which int) {
	if len(r.open) == 0 {
		return
	}
	r.begin(which)
	i := r.open[which%len(r.open)]
	r.slots[i] = r.ledger.End(r.model.now, r.slots[i])
	if a := &r.model.asked[i]; a.out {
		a.out, a.clock = false, r.model.clock
		r.later = true
	}
	r.model.serve()
}

// restore saves the ledger and goes on with one that is loaded.
func (r *run) restore(by int) {
	state := r.ledger.AppendState(nil, r.model.now)
	l := newLedger(r.model.now, r.model.size, r.model.per, r.ledger.rate)
	require.NoError(r, l.load(nil, state))
	r.ledger, r.open = l, nil
	for i := range r.model.asked {
		a := &r.model.asked[i]
		switch {
		case a.out, !a.gone && a.charge:
			a.clock = r.model.clock
		case !a.gone:
			a.permits = 0
			a.clock = -9999
		}
		a.out, a.gone = false, true
		r.slots[i].Permits = 0
	}
	r.advance(by)
}

func (r *run) advance(by int) {
	for range by {
		r.model.tick()
	}
}

func (r *run) pause(by int) {
	until := r.model.now + int64(by)
	require.Equal(r, until > max(r.model.now, r.model.until), r.ledger.Pause(r.model.now, until))
	r.model.pause(until)
	r.later = true
}

func (r *run) stop(by int) {
	until := r.model.now + int64(by)
	require.Equal(r, until > max(r.model.now, r.model.stopped), r.ledger.Stop(r.model.now, until))
	r.model.stopped = max(r.model.stopped, until)
	r.later = true
}

func (r *run) resume() {
	require.Equal(r, max(r.model.until, r.model.stopped) > r.model.now, r.ledger.Resume(r.model.now))
	r.model.resume()
}

// setPer sets a rate that gives windows of that length.
func (r *run) setPer(per int64, retime bool) {
	rate := float64(r.model.size) / float64(per) * 1e9 // +Inf for 0
	same := rate == r.ledger.rate
	if retime {
		r.ledger.Retime(r.model.now, rate)
		r.later = true
	} else {
		r.ledger.SetRate(r.model.now, rate)
	}
	if !same || retime {
		r.model.change(r.model.size, per, retime)
	}
	require.Equal(r, per, r.ledger.per)
	require.Equal(r, rate, r.ledger.Rate())
}

func (r *run) setPolicy(size int, per int64) {
	rate := float64(size) / float64(per) * 1e9
	r.ledger.change(r.model.now, size, per, rate)
	r.model.change(size, per, false)
	require.Equal(r, rate, r.ledger.Rate())
	require.EqualValues(r, size, r.ledger.size)
}

// check compares all that can be seen, in an order of its own: the ledger works out no more
// than it is asked for.
func (r *run) check(order int) {
	now, times := r.model.now, r.model.times(1)
	checks := []func(){
		func() {
			require.Equal(r, times[len(times)-1], r.ledger.NextFree(now), "at %d: %+v", now, r.model)
		},
		func() {
			room := 0
			if !r.model.waiting() {
				room = max(0, r.model.size-r.model.held())
			}
			require.Equal(r, float64(room), r.ledger.Stored(now), "at %d: %+v", now, r.model)
		},
		func() {
			require.Equal(r, !r.model.waiting() && now >= max(r.model.until, r.model.stopped), r.ledger.Idle(now))
		},
		func() {
			for i := range r.slots {
				if order&8 != 0 {
					i = len(r.slots) - 1 - i
				}
				r.checkReady(i, times[i])
			}
			r.later = false
		},
	}
	for i := range checks {
		checks[(i+order)%len(checks)]()
	}
}

// checkReady compares the time of one, if it waits.
func (r *run) checkReady(i int, want int64) {
	if r.slots[i].Permits == 0 {
		return
	}
	ready, known := r.ledger.Ready(r.model.now, r.slots[i].Number)
	require.Equal(r, !r.model.asked[i].gone, known, "at %d: number %d in %+v", r.model.now, i, r.model)
	if !known {
		return
	}
	require.Equal(r, want, ready, "at %d: number %d in %+v", r.model.now, i, r.model)
	require.True(r, r.later || r.model.using() || ready <= r.told[i], "later than it was told")
	r.told[i] = ready
}

// Without a limit a request waits for no permits in use: it was granted when the pause ended, whenever that is noticed.
func TestUseWithoutALimit(t *testing.T) {
	r := newRun(t, 3, 12)
	r.reserve(2, never/2)
	r.begin(0)
	r.pause(10)
	r.reserve(3, never/2)
	r.setPer(0, true)
	r.advance(100)
	r.setPer(7, true)
	r.check(0)
}
