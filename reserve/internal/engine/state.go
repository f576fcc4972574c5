package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// A state is, in this order:
//
//	"pace" and the version
//	the variant's package, with its length in front
//	when it was saved, int64, Unix nanoseconds
//	the ledger's state
//	a checksum of all that, CRC-32C
//
// Numbers are little-endian.
const stateMagic = "pace\x01"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary is reserve.Limiter's.
func (l *Limiter) AppendBinary(b []byte) ([]byte, error) {
	now := l.lock()
	defer l.mu.Unlock()
	p, ok := l.ledger.(Saver)
	variant := &l.cold.policy.variant
	if !ok || variant.Load == nil && l.cold.policy.terms.Curve == nil {
		return b, fmt.Errorf("reserve: %s has no state that can be saved", variant.Limiter)
	}
	from := len(b)
	b = append(b, stateMagic...)
	b = append(binary.AppendUvarint(b, uint64(len(variant.Package))), variant.Package...)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.clock.Time(now).UnixNano()))
	b = p.AppendState(b, now)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli)), nil
}

// Restore is reserve.Policy's. Its errors say why the bytes are no state of a limiter of this policy.
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

// parse takes a state apart.
func (p *Policy) parse(state []byte) (saved int64, ledger []byte, err error) {
	bad := func(why string) (int64, []byte, error) { return 0, nil, errors.New(why) }
	if p.terms.Curve == nil && p.variant.Load == nil {
		return bad(p.variant.Limiter + " has no state that can be restored")
	}
	if len(state) < len(stateMagic)+4 || string(state[:4]) != stateMagic[:4] {
		return bad("they do not begin with pace's mark")
	}
	if state[4] != stateMagic[4] {
		return bad(fmt.Sprintf("they are of version %d; this pace reads version %d", state[4], stateMagic[4]))
	}
	body := state[:len(state)-4]
	if binary.LittleEndian.Uint32(state[len(body):]) != crc32.Checksum(body, castagnoli) {
		return bad("their checksum is wrong: they are cut off or damaged")
	}
	body = body[len(stateMagic):]
	n, size := binary.Uvarint(body)
	if size <= 0 || uint64(len(body)-size) < 8 || n > uint64(len(body)-size-8) {
		return bad("they are cut off")
	}
	if kind := string(body[size:][:n]); kind != p.variant.Package {
		return bad(fmt.Sprintf("they are of package %q; want %q", kind, p.variant.Package))
	}
	body = body[size+int(n):]
	return int64(binary.LittleEndian.Uint64(body)), body[8:], nil
}
