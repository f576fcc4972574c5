package adapt

import (
	"sync"
	"time"
)

// A Block says when a server is called that refuses everything and does not say for how long: an
// outage, or a block that is meant for this client. Once nothing was accepted for 30 s and 10
// refusals, one call goes at a time, at growing distances. Where the server is busy (503, 529) they
// are 3 % of the time that it lasts, so that its end is soon seen. Where it says that there were too
// many calls (429), each distance is 1.4 times the one before, so that a block that every call renews
// ends, too: if it lasts 60 s from the last call, after 5 min.
//
// The zero value is ready to use. Its methods may be called at the same time.
type Block struct {
	mu       sync.Mutex
	since    time.Time // the first refusal in a row
	refusals int       // in a row
	gap      time.Duration
	accepted time.Time // when the last accepted call was sent
	crowded  bool      // there were too many calls, says the server
}

const (
	blockAfter    = 30 * time.Second
	blockRefusals = 10
	firstGap      = 4 * time.Second
	gapGrowth     = 1.4
	lastGap       = 10 * time.Minute
	busyGap       = 0.03 // of the time that it lasts
	leastGap      = time.Second
)

// Refused counts a refusal without a time of a call that was sent at the given time. It returns for
// how long no call should go: 0 if there is no block.
func (b *Block) Refused(now, sent time.Time, busy bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sent.Before(b.accepted) {
		return 0
	}
	if b.refusals++; b.refusals == 1 {
		b.since, b.crowded, b.gap = now, false, 0
	}
	b.crowded = b.crowded || !busy
	lasts := now.Sub(b.since)
	switch {
	case lasts < blockAfter || b.refusals < blockRefusals:
		return 0
	case busy:
		b.gap = max(leastGap, time.Duration(busyGap*float64(lasts)))
	default:
		b.gap = min(max(firstGap, time.Duration(gapGrowth*float64(b.gap))), lastGap)
	}
	return b.gap
}

// On reports whether there is a block, so that one call goes at a time.
func (b *Block) On() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gap > 0
}

// Accepted ends a block. It returns how long it lasted, if the server said that there were too many
// calls; 0: there was none, or it did not, or the call was sent before: it only took long.
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
