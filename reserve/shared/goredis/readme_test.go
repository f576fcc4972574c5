package goredis_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

func callTogether(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	limiter, err := shared.New(goredis.Client(client), "api", reserve.Must(pace.Bursty(100)))
	if err != nil {
		return err
	}
	_, err = limiter.Acquire(ctx, 1) // 100 a second, whichever machine asks
	return err
}

// It is the README's; a test of the root compares the two.
var _ = callTogether
