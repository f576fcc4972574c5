package inbound

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// A comeback tells refused clients when to come back, one after another, and reserves nothing: of 1,200 clients refused
// at 20/s at 0 s, if they come back, a client refused at 10 s is told 50 s. It is over when the limiter has had permits
// to spare for longer than clients may be late.
type comeback struct {
	waits atomic.Bool // clients may have been told to come back; without the lock, for requests that pass

	mu    sync.Mutex
	epoch time.Time
	last  time.Duration // since the epoch: when the last client is to come back
	spare time.Duration // since the epoch: from then on the limiter has had permits to spare
	told  uint64
}

const longestQueue = time.Minute

// lateness is 1 s for whole seconds, and 0.5 s for the way.
const lateness = 1500 * time.Millisecond

const longestWait = 365 * 24 * time.Hour

// next returns an interval after the client before, if a shared limiter serves one client in each; otherwise (0, or
// a queue that is too long) a time in the jitter.
func (l *comeback) next(wait, interval, jitter time.Duration) time.Duration {
	if jitter == 0 || wait >= longestWait {
		return min(wait, longestWait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch.IsZero() {
		l.epoch = time.Now()
	}
	if interval > 0 {
		now := time.Since(l.epoch)
		if l.over(now) {
			l.last = 0
		}
		l.waits.Store(true)
		due := saturate.Add(now, wait) // when the client could be served
		l.spare = due
		next := max(due, saturate.Add(l.last, interval))
		if next-due <= longestQueue {
			l.last = next
			return min(wait+next-due, longestWait)
		}
		jitter = longestQueue
	}
	jitter = max(jitter, wait/4)
	// Multiples of the golden ratio modulo 1 are spread evenly, and neighbours are far apart (Knuth, TAOCP 6.4).
	const golden = 0x9E3779B97F4A7C15 // 2^64 / 1.618...
	part := float64(l.told*golden>>11) / (1 << 53)
	l.told++
	return min(saturate.Add(wait, time.Duration(part*float64(jitter))), longestWait)
}

func (l *comeback) passed(interval time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over(time.Since(l.epoch)) {
		l.last = 0
		l.waits.Store(false)
		return
	}
	l.spare = saturate.Add(l.spare, interval)
}

func (l *comeback) over(now time.Duration) bool { return now > l.last || now-l.spare > lateness }

func seconds(s float64) time.Duration {
	if ns := s * 1e9; ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(1, s)
}
