package smooth

import (
	"encoding/binary"
	"errors"
	"math"
)

// saved is the form of a saved ledger, and savedCurve that of its terms: FORMATS.md.
type saved struct {
	Stored float64
	Owed   int64 // nanoseconds; negative: the bucket holds as much
	Early  float64
	Pause  int64 // nanoseconds
	Flags  uint8
}

const isRetimed = 1

type savedCurve struct {
	Rate, Capacity float64
	Flags          uint8
}

// Flags of savedCurve. If stored permits have a price, the refill and the line follow.
const (
	isFixed = 1 << iota
	isUpfront
	isPriced
	isUnlimited
)

func (l *Ledger) AppendTerms(b []byte) []byte { return l.curve.AppendTerms(b, l.upfront) }

func (c *Curve) AppendTerms(b []byte, up bool) []byte {
	flags := bit(isFixed, c.Fixed) | bit(isUpfront, up) | bit(isPriced, c.Line != nil) | bit(isUnlimited, c.unlimited())
	b, _ = binary.Append(b, binary.LittleEndian, savedCurve{c.Rate, c.Capacity, flags})
	if c.Line != nil {
		b, _ = binary.Append(b, binary.LittleEndian, [4]float64{c.Refill, c.Line.Base, c.Line.Threshold, c.Line.Slope})
	}
	return b
}

func bit(flag uint8, set bool) uint8 {
	if set {
		return flag
	}
	return 0
}

var errNumber = errors.New("they have a number that no limiter has")

// LoadTerms returns what AppendTerms saved, without AtRate: a ledger needs Adopt before its rate can change.
func LoadTerms(b []byte) (c *Curve, up bool, err error) {
	var of savedCurve
	n, err := binary.Decode(b, binary.LittleEndian, &of)
	if err != nil {
		return nil, false, errNumber
	}
	c = &Curve{
		Rate: of.Rate, Capacity: of.Capacity, Interval: Interval(of.Rate), Refill: of.Rate / 1e9,
		Fixed: of.Flags&isFixed != 0,
	}
	if of.Flags&isUnlimited != 0 {
		c.Interval, c.Refill = 0, 0
	}
	var line [4]float64
	if of.Flags&isPriced != 0 {
		if _, err = binary.Decode(b[n:], binary.LittleEndian, &line); err != nil {
			return nil, false, errNumber
		}
		c.Refill, c.Line = line[0], &LinearPrice{line[1], line[2], line[3]}
	}
	good := of.Rate > 0 && of.Capacity >= 0
	for _, number := range line {
		good = good && number >= 0 && number <= math.MaxFloat64
	}
	if !good {
		return nil, false, errNumber
	}
	return c, of.Flags&isUpfront != 0, nil
}

// AppendState appends what is left if all waiting requests give up now: what is stored, what is owed (including charges
// behind them), and the rest of a pause. Times are relative to now. Later refunds of what was granted are worth
// nothing.
func (l *Ledger) AppendState(b []byte, now int64) []byte {
	l.advance(now)
	s := saved{Stored: l.stored, Owed: -l.level(now), Early: l.early, Pause: l.origin(now) - now}
	if l.waits {
		s.Owed = addSaturating(s.Owed, l.history.queue.charged())
	}
	if l.history != nil && l.history.retimed {
		s.Flags = isRetimed
	}
	b, _ = binary.Append(b, binary.LittleEndian, s)
	return b
}

// Load returns a ledger from what AppendState saved at the time then.
func Load(curve *Curve, upfront bool, state []byte, then int64) (*Ledger, error) {
	var s saved
	if n, err := binary.Decode(state, binary.LittleEndian, &s); err != nil || n < len(state) {
		return nil, errors.New("they have another length than a limiter's that stores permits")
	}
	if !(s.Stored >= 0) || !(math.Abs(s.Early) < 1e30) || s.Owed < -1<<62 || s.Pause < 0 || s.Pause > 7<<60 {
		return nil, errNumber
	}
	l := State{s.Stored, addSaturating(then, s.Owed), s.Early}.Ledger(curve, upfront)
	l.fill(then)
	if s.Flags&isRetimed != 0 {
		l.record().retimed = true
	}
	if s.Pause > 0 {
		l.Pause(then, then+s.Pause)
	}
	return &l, nil
}
