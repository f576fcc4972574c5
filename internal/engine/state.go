package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/sealed"
)

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
	t := TermsOf(l.ledger)
	b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	return sealed.End(l.ledger.AppendState(b, now), from), nil
}

func (p *Policy) Saves() bool { return p.terms.Curve != nil || p.terms.Load != nil }

func (p *Policy) Restore(state []byte) (*Limiter, error) {
	body, err := sealed.Open(state, p.terms.Package)
	if err != nil {
		return nil, err
	}
	cutOff := errors.New("they are cut off")
	if len(body) < 8 {
		return nil, cutOff
	}
	saved, body := int64(binary.LittleEndian.Uint64(body)), body[8:]
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return nil, cutOff
	}
	now, terms, body := p.terms.Now(), body[n:][:length], body[n+int(length):]
	passed := max(0, p.terms.Time(now).UnixNano()-saved)
	ledger, err := p.Load(terms, body, saturate.Add(now, -passed), p.terms.Time)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(terms, TermsOf(p.Ledger(now, p.terms.Time))) {
		p.Change(now, ledger, p.terms.Time)
	}
	return p.With(now, ledger), nil
}
