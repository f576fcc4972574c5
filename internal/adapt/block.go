package adapt

import (
	"sync"
	"time"
)

// A Block schedules calls to a server that refuses everything without a time: an outage, or a block of this client.
// After 30 s and 10 refusals without an acceptance, a call goes at a time, at growing distances. For a busy server
// (503, 529) they are 3 % of the time so far. After too many calls (429) each is 1.4 times the last, so that a block
// that every call renews ends, too: a block of 60 s after 5 min.
//
// The zero value is ready to use. Its methods are safe for concurrent use.
type Block struct {
	mu       sync.Mutex
	since    time.Time // the first refusal in a row
	refusals int       // in a row
	gap      time.Duration
	next     time.Time // the end of the gap
	asked    time.Time // when the gap began: refusals of calls sent before are of the same round
	accepted time.Time // when the latest accepted call was sent
	crowded  bool      // it is about too many calls
}

const (
	blockAfter    = 30 * time.Second
	blockRefusals = 10
	firstGap      = 4 * time.Second
	gapGrowth     = 1.4
	busyGap       = 0.03 // of the time so far
	leastGap      = time.Second
)

// Refused counts a refusal, without a time, of a call sent then. It returns the distance to the next call; 0: no block.
func (b *Block) Refused(now, sent time.Time, busy bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sent.Before(b.accepted) {
		return 0
	}
	if b.refusals++; b.refusals == 1 {
		b.since, b.crowded = now, false
	}
	b.crowded = b.crowded || !busy
	if b.gap > 0 && !sent.After(b.asked) {
		return max(b.next.Sub(now), leastGap)
	}
	lasts := now.Sub(b.since)
	switch {
	case lasts < blockAfter || b.refusals < blockRefusals:
		return 0
	case busy:
		b.gap = max(leastGap, time.Duration(busyGap*float64(lasts)))
	default:
		b.gap = min(max(firstGap, time.Duration(gapGrowth*float64(b.gap))), remembered)
	}
	b.asked, b.next = now, now.Add(b.gap)
	return b.gap
}

// On reports whether there is a block.
func (b *Block) On() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gap > 0
}

// Accepted ends a block, also where the call was sent before the block. It returns how long a block about too many
// calls lasted; 0 if the call was sent before.
func (b *Block) Accepted(now, sent time.Time) (crowded time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gap > 0 && b.crowded && !sent.Before(b.since) {
		crowded = now.Sub(b.since)
	}
	if sent.After(b.accepted) {
		b.accepted = sent
	}
	b.refusals, b.gap = 0, 0
	return crowded
}
