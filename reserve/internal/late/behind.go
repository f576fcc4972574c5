package late

import (
	"iter"
	"time"

	"github.com/nextfree/pace/reserve"
)

// behind returns how long a request for n permits would wait at a limiter behind others.
func behind(l *reserve.Limiter, ahead iter.Seq[int], n int) time.Duration {
	wait, err := engine.Wait(l, n)
	if err != nil {
		return reserve.Forever
	}
	sum := 0
	for m := range ahead {
		sum += m
	}
	return add(wait, time.Duration(float64(sum)/l.Rate()*float64(time.Second)))
}
