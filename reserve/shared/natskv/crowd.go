package natskv

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/wake"
)

// A crowd spreads the attempts of processes that replace one value by compare and swap: otherwise N of them make N/2
// attempts for each write. Each waits for a random part of its spread, which grows by a quarter with each lost attempt,
// and vanishes in the time of 200. So all lose equally often: with 32, about half of the attempts (TestCrowd).
type crowd struct {
	mu      sync.Mutex
	spreads [64]spread // by the key's hash
}

type spread struct{ width, at time.Duration } // at: since begin

const (
	widest   = 250 * time.Millisecond
	vanishes = 200 // attempts
)

var (
	seed  = maphash.MakeSeed()
	begin = time.Now()
)

func (c *crowd) of(key string) *spread {
	return &c.spreads[maphash.String(seed, key)%uint64(len(c.spreads))]
}

// wait waits before an attempt, or until the context ends. An update that has lost some attempts waits less.
func (c *crowd) wait(ctx context.Context, key string, lost int) {
	c.mu.Lock()
	width := c.of(key).width / time.Duration(1+lost)
	c.mu.Unlock()
	if width > 0 {
		wake.Sleep(ctx, rand.N(width), nil)
	}
}

// tried reports how an attempt went, and how long it took.
func (c *crowd) tried(key string, won bool, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.of(key), time.Since(begin)
	left := 1 - float64(now-s.at)/float64(vanishes*max(1, took))
	s.width, s.at = time.Duration(max(0, left)*float64(s.width)), now
	if !won {
		s.width = min(widest, s.width+s.width/4+took/4)
	}
}
