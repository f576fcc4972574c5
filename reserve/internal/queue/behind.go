package queue

import (
	"iter"
	"math"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// behind returns n permits' wait behind requests of those sizes, the first of which waits at least after.
func (l *Limit) behind(ahead iter.Seq[int], n int, after time.Duration) time.Duration {
	if by, ok := l.By.(*reserve.Limiter); ok {
		wait, err := behind((*engine.Limiter)(by), ahead, n)
		if most := tooMany(err); most > 0 && l.Clip {
			wait, err = behind((*engine.Limiter)(by), ahead, most)
		}
		if err != nil {
			return reserve.Forever
		}
		return max(wait, after, l.paused())
	}
	wait, err := l.known(n)
	if err != nil || wait == unknown {
		wait = 0
	}
	wait = max(wait, after)
	if rate := l.rate(); rate > 0 {
		wait = add(wait, seconds(float64(total(ahead))/rate))
	}
	return wait
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), float64(math.MaxInt64/2)))
}

// behind counts a request larger than a window as the whole window. Elsewhere only the sum matters.
func behind(l *engine.Limiter, ahead iter.Seq[int], n int) (time.Duration, error) {
	o := l.Outlook()
	if !o.Window || o.Capacity < 1 {
		return l.Behind(once(total(ahead)), n)
	}
	return l.Behind(func(yield func(int) bool) {
		for size := range ahead {
			if size > 0 && !yield(min(size, int(o.Capacity))) {
				return
			}
		}
	}, n)
}

func total(sizes iter.Seq[int]) int {
	sum := int64(0)
	for size := range sizes {
		sum = saturate.Add(sum, int64(size))
	}
	return int(sum)
}

func add[T int64 | time.Duration](t T, d time.Duration) T { return saturate.Add(t, T(d)) }

func isWindow(l *Limit) bool {
	by, ok := l.By.(*reserve.Limiter)
	return ok && (*engine.Limiter)(by).Outlook().Window
}

func once(size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if size > 0 {
			yield(size)
		}
	}
}

// atMost is behind for a sum, and reports whether it is exact.
func (l *Limit) atMost(sum int, each bool, n int, after time.Duration, clock *engine.Clock) (wait time.Duration, exact bool) {
	if !isWindow(l) {
		return l.behind(once(sum), n, after), true
	}
	if !each { // any two that follow each other fill a window, or a period
		sum = int(saturate.Add(int64(sum), int64(sum)))
	}
	by := l.By.(*reserve.Limiter)
	_, err := by.Peek(math.MaxInt)
	most := tooMany(err)
	if most > 0 {
		at := by.Forecast(int(saturate.Add(int64(sum), int64(min(n, most)))))
		wait = time.Duration(clock.Since(at) - clock.Now())
	} else if wait, err = (*engine.Limiter)(by).Behind(once(sum), n); err != nil { // a quota by the calendar
		wait = reserve.Forever
	}
	return max(wait, after, l.paused()), each && most > 0
}
