// Package late is another name of package queue, for packages that still use it.
package late

import "github.com/nextfree/pace/reserve/internal/queue"

// A Rank is queue.Rank.
type Rank = queue.Rank

// The functions of package queue.
var (
	WithRank   = queue.WithRank
	RankOf     = queue.RankOf
	WithExcept = queue.WithExcept
	ExceptOf   = queue.ExceptOf
)
