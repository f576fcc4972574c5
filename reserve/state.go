package reserve

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// A StateError says why bytes are not the state of a limiter of that policy. Nothing was restored.
type StateError struct {
	Why string // "they are cut off"
}

func (e *StateError) Error() string { return "reserve: these bytes are no state to restore: " + e.Why }

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

// persistent is a ledger whose state can outlive the process.
type persistent interface {
	// AppendState appends what is left if all requests that wait give up now. Times in it are relative to now, or
	// those of the wall clock.
	AppendState(b []byte, now int64) []byte
}

// AppendBinary appends to b what must outlive the process: what is stored or owed, what is used of a window or a
// period, and when a pause ends. [Policy.Restore] makes a limiter of it, on this machine or another.
//
// Waiting requests are not part of it. They end with their process, as if they had given up, but a warming-up limiter
// stays as warm as they made it. Permits that were granted are used: their reservations end too, so nothing of them
// comes back. A reservation that would have been cancelled or settled for less after the restart loses those permits:
// at most what the process had reserved and not settled.
//
// A bursty limiter's state takes some 50 bytes, a window's 2 to 12 for each call in it.
//
// It returns an error for a variant of one's own whose [Ledger] has no method AppendState(b []byte, now int64) []byte.
func (l *Limiter) AppendBinary(b []byte) ([]byte, error) {
	now := l.lock()
	defer l.mu.Unlock()
	p, ok := l.ledger.(persistent)
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

// Restore returns a limiter of this policy with a state that [Limiter.AppendBinary] has saved: as if it had been idle
// since. The policy may have another rate or capacity, but not another variant. Permits that are stored beyond the
// capacity are lost.
//
// The time between is read from the wall clock. If that was set back meanwhile, no time has passed: it gives no
// permits, and what is owed is owed from now on.
//
// A bursty limiter at 10/s that owes 5 s is saved. Restored after 2 s, it owes 3 s. After 7 s, it has 10 permits
// stored, if it stores a second's.
//
// It returns a *[StateError] if the bytes are of another variant, of a newer version, or damaged.
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
			return nil, &StateError{Why: err.Error()}
		}
		return p.smoothLimiter(now, *restored), nil
	}
	restored, err := p.variant.Load(ledger, then, func(t int64) time.Time { return p.terms.Time(t) })
	if err != nil {
		return nil, &StateError{Why: err.Error()}
	}
	return p.ledgerLimiter(now, restored), nil
}

// parse takes a state apart.
func (p *Policy) parse(state []byte) (saved int64, ledger []byte, err error) {
	bad := func(why string) (int64, []byte, error) { return 0, nil, &StateError{Why: why} }
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
