package queue

import (
	"context"
	"sync/atomic"
)

// A Rank is a request's place in an order. A request that asks again goes before requests that first asked after it.
// The zero value is a new request's.
type Rank struct {
	Number  uint64
	Arrived int64
}

// numbers are the same for all queues, so that ranks compare where queues meet.
var numbers atomic.Uint64

func (p *Place) join(now int64) {
	p.rank = Rank{numbers.Add(1), now}
	if r := p.Rank; r != nil {
		if r.Number == 0 {
			*r = p.rank
		}
		p.rank = *r
	}
}

type rankKey struct{}

// RankOf returns the rank of the request in whose name a limit is asked, or nil.
func RankOf(ctx context.Context) *Rank {
	r, _ := ctx.Value(rankKey{}).(*Rank)
	return r
}
