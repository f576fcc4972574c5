package pacetest

import (
	"slices"
	"sync"
	"time"
)

// TB is the part of testing.TB that assertions use.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// NeverMoreThan fails the test if some stretch of d holds more than n of the times, in any order. The times may be
// exactly d apart. It also fails if d is not positive, n is negative, or there are no times and n is not 0.
func NeverMoreThan(t TB, n int, d time.Duration, times []time.Time) {
	t.Helper()
	switch {
	case d <= 0:
		t.Errorf("pacetest: NeverMoreThan's stretch is %v; want a positive time", d)
		return
	case n < 0:
		t.Errorf("pacetest: NeverMoreThan's number is %d; want 0 or more", n)
		return
	case len(times) == 0 && n > 0:
		t.Errorf("pacetest: NeverMoreThan got no times; want at least 1, or a number of 0")
		return
	}
	if most, at := mostIn(d, times); most > n {
		t.Errorf("pacetest: %d times in the %v from %v, %v after the first of %d; want %d at most",
			most, d, at.Format(time.RFC3339Nano), at.Sub(slices.MinFunc(times, time.Time.Compare)), len(times), n)
	}
}

// mostIn returns how many of the times are in the fullest stretch of d, and when its first is.
func mostIn(d time.Duration, times []time.Time) (most int, at time.Time) {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	first := 0
	for i, t := range times {
		for first < i && t.Sub(times[first]) >= d {
			first++
		}
		if n := i - first + 1; n > most {
			most, at = n, times[first]
		}
	}
	return most, at
}

// Times are when something happened. The zero value is ready to use, concurrently.
type Times struct {
	mu sync.Mutex
	at []time.Time
}

// Note adds the present time.
func (t *Times) Note() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = append(t.at, time.Now())
}

func (t *Times) All() []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.at)
}
