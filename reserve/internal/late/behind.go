package late

import (
	"iter"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// behind returns how long a request for n permits would wait at a limiter behind others. At a window a size that is
// larger than the window counts as several requests.
func behind(l *reserve.Limiter, ahead iter.Seq[int], n int) time.Duration {
	var wait time.Duration
	var err error
	if o := (*engine.Limiter)(l).Outlook(); o.Window && o.Capacity >= 1 {
		wait, err = (*engine.Limiter)(l).Behind(pieces(ahead, int(o.Capacity)), n)
	} else {
		sum := 0
		for size := range ahead {
			sum += size
		}
		wait, err = (*engine.Limiter)(l).Behind(pieces(func(yield func(int) bool) { yield(sum) }, sum), n)
	}
	if err != nil {
		return reserve.Forever
	}
	return wait
}

// pieces returns sizes, those above 0 and the larger ones in pieces of at most largest.
func pieces(sizes iter.Seq[int], largest int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for size := range sizes {
			for ; size > 0; size -= largest {
				if !yield(min(size, largest)) {
					return
				}
			}
		}
	}
}
