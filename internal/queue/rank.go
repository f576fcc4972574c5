package queue

import (
	"context"

	"github.com/nextfree/pace/internal/order"
)

// A Rank is a request's place in an order.
type Rank = order.Rank

type rankKey struct{}

// RankOf returns the rank of the request in whose name a limit is asked, or nil.
func RankOf(ctx context.Context) *Rank {
	r, _ := ctx.Value(rankKey{}).(*Rank)
	return r
}
