// Package backoff stands in for github.com/cenkalti/backoff/v5.
package backoff

import "context"

func Retry[T any](ctx context.Context, operation func() (T, error)) (T, error) { return operation() }
