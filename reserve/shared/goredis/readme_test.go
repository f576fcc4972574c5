package goredis_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// newSharedLimiter is called once in each process. Package redis is github.com/redis/go-redis/v9.
func newSharedLimiter() (*shared.Limiter, error) {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	return shared.New(goredis.Client(client), "api", pace.Must(pace.Bursty(100)))
}

// It is the guide's; a test of the root compares the two.
var _ = newSharedLimiter
