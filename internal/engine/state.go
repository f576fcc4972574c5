package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/sealed"
)

// AppendBinary is reserve.Limiter's. FORMATS.md has the format.
func (l *Limiter) AppendBinary(b []byte) ([]byte, error) {
	now := l.lock()
	defer l.mu.Unlock()
	terms := &l.cold.policy.terms
	if !l.cold.policy.Saves() {
		return b, fmt.Errorf("pace: %s has no state that can be saved", terms.Limiter)
	}
	from := len(b)
	b = sealed.Begin(b, terms.Package)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.clock.Time(now).UnixNano()))
	return sealed.End(l.ledger.AppendState(b, now), from), nil
}

// Saves reports whether the limiters' state can be saved.
func (p *Policy) Saves() bool { return p.terms.Curve != nil || p.terms.Load != nil }

func (p *Policy) Restore(state []byte) (*Limiter, error) {
	body, err := sealed.Open(state, p.terms.Package)
	if err == nil && len(body) < 8 {
		err = errors.New("they are cut off")
	}
	if err != nil {
		return nil, err
	}
	saved, now := int64(binary.LittleEndian.Uint64(body)), p.terms.Now()
	passed := max(0, p.terms.Time(now).UnixNano()-saved)
	ledger, err := p.Ledger(body[8:], saturate.Add(now, -passed), p.terms.Time)
	if err != nil {
		return nil, err
	}
	return p.With(now, ledger), nil
}
