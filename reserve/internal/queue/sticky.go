package queue

import "context"

type stickyKey struct{}

// WithSticky returns a context whose requests prefer the option that served the latest request of the same key.
func WithSticky(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, stickyKey{}, key)
}

// StickyOf returns a context's key, and whether it has one.
func StickyOf(ctx context.Context) (key string, ok bool) {
	key, ok = ctx.Value(stickyKey{}).(string)
	return key, ok
}
