package order

import "sync/atomic"

// A Rank is a request's place in an order. A request that asks again goes before requests that first asked after it.
// The zero value is a new request's.
type Rank struct {
	Number  uint64
	Arrived int64
}

// numbers are all orders', so that ranks compare where queues meet.
var numbers atomic.Uint64

// rankAt returns the rank of a request that comes now, or first came as again says.
func rankAt(now int64, again *Rank) Rank {
	r := Rank{numbers.Add(1), now}
	if again == nil {
		return r
	}
	if again.Number == 0 {
		*again = r
	}
	return *again
}
