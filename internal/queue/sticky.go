package queue

import (
	"context"

	"github.com/nextfree/pace/internal/recent"
)

// A Sticky remembers which option served a key last. The zero value remembers none.
type Sticky struct{ options recent.Map[string, int] }

func (s *Sticky) Prefers(p *Place) int {
	if p.Key != "" {
		if option, ok := s.options.Get(p.Key); ok {
			return option
		}
	}
	return -1
}

func (s *Sticky) Granted(p *Place, option int) {
	if p.Key != "" {
		s.options.Set(p.Key, option)
	}
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
