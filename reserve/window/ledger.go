package window

import (
	"math"
	"math/bits"
	"sort"

	"github.com/nextfree/pace/internal/line"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/smooth"
)

// A ledger logs what was granted within the last per. A request is granted at the first time t at which its permits and
// those granted in (t-per, t] are at most the size. Times are on the window's clock, which stands still during a pause.
type ledger struct {
	line.Line[state]
	size   int64
	per    int64
	rate   float64
	margin int64 // for which a permit counts longer than by the rate
	until  int64 // the end of the latest pause, the limiter's time

	log    line.Queue[grant]
	left   uint64 // the sum at the newest grant that has left the log
	forgot uint64 // its number
	last   uint64 // the number of the newest request that was granted
	out    int64  // permits in use, until now as far as is known: see use.go
	using  int64  // the latest time at which they were in use
}

type state struct {
	at  int64
	sum uint64 // permits granted up to it, since the beginning, modulo 2^64
}

func (s state) When() int64 { return s.at }

// A grant is what was granted at one moment.
type grant struct {
	number uint64 // of the newest
	state
}

const (
	never   = saturate.Never    // the largest time
	longest = math.MaxInt64 / 2 // the longest window and the longest pause: 146 years
)

func newLedger(now int64, size int, per int64, rate float64) *ledger {
	l := &ledger{size: int64(size), per: per, rate: rate, until: now}
	l.Line = line.Of[state](l)
	l.Now, l.Stopped = now, now
	return l
}

func (l *ledger) Size() (capacity float64, largest int) { return float64(l.size), int(l.size) }

func (l *ledger) Rate() float64 { return l.rate }

func (l *ledger) Advance(now int64) {
	clock := max(now, l.until) + l.Offset
	l.Held, l.using = now < l.until, clock
	if l.out > 0 {
		l.Release()
	}
	l.Due(clock)
	l.Now = clock
	// A request granted at this moment stays, even if the window has no length: it may get one.
	gone, all := 0, l.log.All()
	for gone < len(all) && all[gone].at <= clock-max(1, l.per) {
		gone++
	}
	if gone > 0 {
		l.left, l.forgot = all[gone-1].sum, all[gone-1].number
		l.log.Drop(gone)
	}
}

func (l *ledger) Present() state {
	if all := l.log.All(); len(all) > 0 {
		return state{at: l.Now, sum: all[len(all)-1].sum}
	}
	return state{at: l.Now, sum: l.left}
}

func (l *ledger) ahead(prev state) int64 { return saturate.Add(int64(prev.sum-l.left), l.out) }

// A request for more than a window that has shrunk needs an empty window.
func (l *ledger) After(prev state, permits, latest int64) state {
	at, ahead := max(l.Now, prev.at), l.ahead(prev)
	after := state{at: at, sum: prev.sum + uint64(min(permits, math.MaxInt64-ahead))}
	if latest == line.Asap {
		return after
	}
	if over := ahead + (min(permits, l.size) - l.size); over > 0 && l.per > 0 {
		after.at = max(at, min(saturate.Add(l.oldest(over), l.per), latest))
	}
	after.at = max(after.at, saturate.Add(l.Stopped, l.Offset))
	return after
}

// oldest returns when the newest of the oldest permits was granted. Permits in use count as of now.
func (l *ledger) oldest(permits int64) int64 {
	granted := int64(l.Present().sum - l.left)
	has := func(s state) bool { return int64(s.sum-l.left) >= permits }
	switch {
	case permits <= granted:
		all := l.log.All()
		return all[sort.Search(len(all), func(i int) bool { return has(all[i].state) })].at
	case permits <= saturate.Add(granted, l.out):
		return l.using
	default:
		permits -= l.out
		return l.Find(has).at
	}
}

func (l *ledger) Grant(number uint64, _ int64, after state) {
	l.last = number
	if all := l.log.All(); len(all) > 0 && all[len(all)-1].at == after.at {
		all[len(all)-1] = grant{number, after}
		return
	}
	l.log.Push(grant{number, after})
}

func (l *ledger) Refund(slot smooth.Slot, kept int) {
	back, all := int64(slot.Permits-kept), l.log.All()
	switch {
	case slot.Number == inUse:
		l.out -= back
	case slot.Number >= wasInUse:
		at := int64(slot.Number<<2) >> 2
		if i := sort.Search(len(all), func(i int) bool { return all[i].at >= at }); i < len(all) && all[i].at == at {
			l.remove(i, back)
		}
	default:
		l.withdraw(slot.Number, back)
	}
}

func (l *ledger) withdraw(number uint64, permits int64) {
	all := l.log.All()
	i := sort.Search(len(all), func(i int) bool { return all[i].number >= number })
	if number > l.forgot && i < len(all) {
		l.remove(i, permits)
	}
}

func (l *ledger) remove(i int, permits int64) {
	all, before := l.log.All(), l.left
	if i > 0 {
		before = all[i-1].sum
	}
	back := min(uint64(permits), all[i].sum-before)
	for j := i; j < len(all); j++ {
		all[j].sum -= back
	}
	if all[i].sum == before {
		l.log.Cut(i + copy(all[i:], all[i+1:]))
	}
}

func (l *ledger) Left() int64 {
	if l.per == 0 {
		return l.size
	}
	return l.size - l.ahead(l.Present())
}

func (l *ledger) TakeUpTo(now int64, permits int) int {
	l.Advance(now)
	if l.per == 0 && l.Len() == 0 && now >= l.Paused() { // there is no limit
		return permits
	}
	return l.Line.TakeUpTo(now, permits)
}

func (l *ledger) Forecast(now int64, n int) int64 {
	// A permit goes when the permit a whole window in front leaves.
	size := int(l.size)
	windows, last := (n-1)/size, (n-1)%size+1
	ready := l.Behind(now, nil, last)
	high, later := bits.Mul64(uint64(windows), uint64(l.per))
	if high > 0 || later > math.MaxInt64 {
		return never
	}
	return saturate.Add(ready, int64(later))
}
