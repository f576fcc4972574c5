package smooth

import "math"

// A Ledger is the state of one limiter. New makes it. It is not safe for concurrent use. Times must not run back.
type Ledger struct {
	curve   *Curve
	empty   int64    // when the bucket is, or was, empty
	early   float64  // by how much the latest amount was rounded up, in nanoseconds
	stored  float64  // permits beside the bucket, as of empty
	span    int64    // what the bucket can hold, in nanoseconds
	low     int64    // the smallest headroom at grants that headrooms don't have yet
	history *history // nil until a request may wait, or may be refunded
	upfront bool
	waits   bool // a request waits
}

type history struct {
	queue     queue
	headrooms headrooms[int64]
	rooms     headrooms[float64] // of the store beside the bucket
	room      float64            // its smallest since the last of these
	huge      map[uint64]int64   // amounts by number, of which a float64 or the end of time has cut something off
	number    uint64             // of the newest request. Those of charges are odd
	price     *price             // that requests are sold at
	moved     int64              // when waiting requests last got earlier times; none is granted before
	until     int64              // the end of the latest pause
	retimed   bool               // Retime was called: from then on, each change of the rate keeps permits
	eras      eras               // of requests that wait since before a change
	shrunk    uint64             // the newest request that waited when the bucket last became smaller, in permits
	least     float64            // how small it became while those waited: at the beginning's scale
}

// A price is what a request was sold at; it is immutable.
type price struct {
	curve *Curve
	scale float64 // what a nanosecond sold at the beginning was worth then
}

// A Slot is a request's place in the order. Its time may become earlier: see [Ledger.Ready]. With a fifth field, the
// compiler would no longer return it in registers.
type Slot struct {
	Number  uint64
	Permits int

	price  *price
	stored float64 // permits beside the bucket right before it
}

// New returns the ledger of a limiter that is free from now on. With upfront a request waits for its own cost, as in a
// classic token bucket; without, the next request does.
func New(curve *Curve, now int64, stored float64, upfront bool) *Ledger {
	l := State{stored: stored, empty: now}.Ledger(curve, upfront)
	l.fill(now)
	return &l
}

func (l *Ledger) record() *history {
	if l.history == nil {
		l.history = &history{price: &price{l.curve, 1}, moved: math.MinInt64, until: math.MinInt64, room: 1}
	}
	return l.history
}

// Ready returns when a slot's permits may be used, or were granted, by what is known now; known is false if that is
// forgotten.
func (l *Ledger) Ready(now int64, number uint64) (ready int64, known bool) {
	l.advance(now)
	if l.history == nil {
		return 0, false
	}
	q := &l.history.queue
	i, known := q.index(number)
	switch {
	case !known:
		return 0, false
	case i < q.granted:
		return q.entries[i].amount, true
	}
	return l.promised(q.before(i), q.entries[i].amount, number), true
}

func (l *Ledger) Waits(now int64, number uint64) bool {
	ready, known := l.Ready(now, number)
	return known && ready > now
}

func (l *Ledger) Rate() float64 { return l.curve.Rate }

func (l *Ledger) Stored(now int64) float64 {
	l.advance(now)
	if l.curve.unlimited() {
		return l.curve.Capacity
	}
	stored := l.stored
	if time := l.rest(now); time > 0 && l.span > 0 {
		stored += time / l.curve.Interval
	}
	return min(stored, l.curve.Capacity)
}

// Level returns the number of stored permits. While anything is owed it is negative: minus the fresh permits that must
// come first, also for waiting requests.
func (l *Ledger) Level(now int64) float64 {
	l.advance(now)
	if time := l.rest(now); time < 0 && !l.curve.unlimited() {
		return time / l.curve.Interval
	}
	return l.Stored(now)
}

func (l *Ledger) Idle(now int64) bool {
	l.advance(now)
	return !l.waits && l.origin(now) == now && now >= l.empty && (l.span > 0 || math.Abs(l.early) < epsilon)
}

func (l *Ledger) rest(now int64) float64 { return float64(l.level(now)-l.owed()) + l.early }

// level is what the bucket holds, in nanoseconds; in debt it is negative.
func (l *Ledger) level(now int64) int64 { return -addSaturating(l.empty, -l.origin(now)) }

// origin is now, or the end of a pause.
func (l *Ledger) origin(now int64) int64 { return max(now, l.Paused()) }

func (l *Ledger) owed() int64 {
	if !l.waits {
		return 0
	}
	return l.history.queue.owed
}

// promise returns when a request is granted. No sum of amounts ends after the end of time: see price.
func (l *Ledger) promise(before, own int64, number uint64) int64 {
	if l.upfront {
		before += own - l.ahead(number)
	}
	return l.origin(l.empty + before)
}

// promised is promise, behind requests of before a change, which it might overtake.
func (l *Ledger) promised(before, own int64, number uint64) int64 {
	at := l.promise(before, own, number)
	if !l.waits || len(l.history.eras) == 0 {
		return at
	}
	q := &l.history.queue
	for _, e := range l.history.eras {
		i, _ := q.index(e.last + 1)
		for i--; i >= q.granted && q.entries[i].amount == left; i-- {
		}
		if e.last < number && i >= q.granted {
			at = max(at, l.promise(q.before(i), q.entries[i].amount, q.entries[i].number))
		}
	}
	return at
}

// ahead is what a request need not wait for, if it is paid upfront: as of its sale.
func (l *Ledger) ahead(number uint64) int64 {
	if h := l.history; h != nil && len(h.eras) > 0 {
		for _, e := range h.eras {
			if number <= e.last {
				return e.ahead
			}
		}
	}
	return l.curve.Ahead()
}

// An era has requests that wait since before a change, up to the last, and what they need not wait for.
type era struct {
	last  uint64
	ahead int64
}

type eras []era

func (e eras) after(waits bool, last uint64, ahead int64, scale float64) eras {
	if !waits || ahead == 0 {
		return nil
	}
	e = append(e, era{last, ahead})
	for i := range e {
		e[i].ahead = roundDown(float64(e[i].ahead) * scale)
	}
	return e
}

// limit is what the bucket may hold: its span, or upfront the first request's need. (A waiting request's need takes the
// place of the permit that Upfront adds: at a lower rate that permit would be as long as many of the queue's.)
func (l *Ledger) limit() int64 {
	if l.upfront && l.waits {
		return max(l.span-l.curve.extra, l.history.queue.first().amount-l.ahead(l.history.queue.first().number))
	}
	return l.span
}

func (l *Ledger) note(now int64) {
	h := l.history
	after := h.number
	if l.waits {
		after = h.queue.first().number - 1
	}
	h.headrooms.push(headroom[int64]{after, min(l.low, max(0, addSaturating(l.limit(), -l.level(now))))})
	l.low = math.MaxInt64
}

func (l *Ledger) noteStore() {
	if l.span == 0 && l.curve.Capacity > 0 {
		h := l.history
		h.rooms.push(headroom[float64]{h.number, min(h.room, l.room())})
		h.room = 1
	}
}

// room is the empty part of the store beside the bucket.
func (l *Ledger) room() float64 { return 1 - l.stored/l.curve.Capacity }
