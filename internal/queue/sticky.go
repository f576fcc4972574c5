package queue

import (
	"context"
	"sync"
)

const generation = 1 << 15

// A Sticky remembers which option served a key last, in two generations. The zero value remembers none.
type Sticky struct {
	mu       sync.Mutex
	now, old map[string]int
}

func (s *Sticky) Prefers(p *Place) int {
	if p.Key == "" {
		return -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if option, ok := s.now[p.Key]; ok {
		return option
	}
	if option, ok := s.old[p.Key]; ok {
		return option
	}
	return -1
}

func (s *Sticky) Granted(p *Place, option int) {
	if p.Key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || len(s.now) >= generation {
		s.now, s.old = map[string]int{}, s.now
	}
	s.now[p.Key] = option
}

type stickyKey struct{}

// WithSticky returns a context whose requests prefer the option that served the latest request of the same key.
func WithSticky(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, stickyKey{}, key)
}

// StickyOf returns a context's key, if any.
func StickyOf(ctx context.Context) (key string, ok bool) {
	key, ok = ctx.Value(stickyKey{}).(string)
	return key, ok
}
