package smooth

import "math"

// Size returns how many permits can be stored. A request may be of any size.
func (l *Ledger) Size() (capacity float64, largest int) { return l.curve.Capacity, math.MaxInt }

// Forecast returns when the last of n requests for one permit would be ready, if they were made from now on as fast as
// they are granted: only their sum matters.
func (l *Ledger) Forecast(now int64, n int) (ready int64) {
	return l.Behind(now, func(yield func(int) bool) {
		if n > 1 {
			yield(n - 1)
		}
	}, 1)
}
