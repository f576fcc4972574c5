package window

import (
	"encoding/binary"
	"errors"
	"math"
)

// AppendState appends the rest of a pause and of a stop, then the permits and age of each request granted within the
// last per. The age counts from the end of use; permits in use, and charges that wait, have age 0.
func (l *ledger) AppendState(b []byte, now int64) []byte {
	l.advance(now)
	b = binary.AppendUvarint(b, uint64(max(0, l.until-now)))
	b = binary.AppendUvarint(b, uint64(max(0, l.stopped-now)))
	add := func(permits uint64, at int64) {
		if permits > 0 {
			b = binary.AppendUvarint(b, permits)
			b = binary.AppendUvarint(b, uint64(max(0, l.floor-at)))
		}
	}
	ended := l.uses.ended
	for i := range l.granted {
		r := l.ring.at(i)
		for ; len(ended) > 0 && ended[0].at < r.at; ended = ended[1:] {
			add(ended[0].permits, ended[0].at)
		}
		add(r.permits, r.at)
	}
	for _, u := range ended {
		add(u.permits, u.at)
	}
	add(l.uses.out.low, l.floor)
	for i := l.granted; i < l.ring.length; i++ {
		if r := l.ring.at(i); r.config == nil { // a charge, which counts from now on if all others leave
			add(r.permits, l.floor)
		}
	}
	return b
}

func (l *ledger) load(saved []byte) error {
	next := func() (n int64, err error) {
		u, size := binary.Uvarint(saved)
		if size <= 0 || u > math.MaxInt64/2 {
			return 0, errors.New("they have no number where a window's have one")
		}
		saved = saved[size:]
		return int64(u), nil
	}
	begin := l.floor
	pause, err := next()
	if err != nil {
		return err
	}
	stop, err := next()
	if err != nil {
		return err
	}
	l.until += pause
	l.stopped += stop
	changed := *l.config
	changed.behind += pause
	l.config = &changed
	last := int64(never)
	for len(saved) > 0 {
		permits, err := next()
		if err != nil {
			return err
		}
		age, err := next()
		if err != nil {
			return err
		}
		if permits == 0 || age > last {
			return errors.New("they have requests that are not in order")
		}
		last = age
		l.number++
		l.ring.push(request{number: l.number, permits: uint64(permits), at: begin - age, config: l.config})
		l.granted++
		l.placed++
		l.held.add(uint64(permits))
	}
	return nil
}
