package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/sealed"
	"github.com/nextfree/pace/smooth"
)

// AppendBinary is reserve.Limiter's. FORMATS.md has the format.
func (l *Limiter) AppendBinary(b []byte) ([]byte, error) {
	now := l.lock()
	defer l.mu.Unlock()
	p, ok := l.ledger.(Saver)
	variant := &l.cold.policy.variant
	if !ok || variant.Load == nil && l.cold.policy.terms.Curve == nil {
		return b, fmt.Errorf("pace: %s has no state that can be saved", variant.Limiter)
	}
	from := len(b)
	b = sealed.Begin(b, variant.Package)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.clock.Time(now).UnixNano()))
	return sealed.End(p.AppendState(b, now), from), nil
}

func (p *Policy) Restore(state []byte) (*Limiter, error) {
	saved, ledger, err := p.parse(state)
	if err != nil {
		return nil, err
	}
	now := p.terms.Now()
	passed := max(0, p.terms.Time(now).UnixNano()-saved)
	then := saturate.Add(now, -passed)
	if p.terms.Curve != nil {
		restored, err := smooth.Load(p.terms.Curve, p.terms.Upfront, ledger, then)
		if err != nil {
			return nil, err
		}
		return p.Grow(now, *restored), nil
	}
	restored, err := p.Ledger(ledger, then, func(t int64) time.Time { return p.terms.Time(t) })
	if err != nil {
		return nil, err
	}
	return p.withLedger(now, restored), nil
}

func (p *Policy) parse(state []byte) (saved int64, ledger []byte, err error) {
	if p.terms.Curve == nil && p.variant.Load == nil {
		return 0, nil, errors.New(p.variant.Limiter + " has no state that can be restored")
	}
	body, err := sealed.Open(state, p.variant.Package)
	if err == nil && len(body) < 8 {
		err = errors.New("they are cut off")
	}
	if err != nil {
		return 0, nil, err
	}
	return int64(binary.LittleEndian.Uint64(body)), body[8:], nil
}
