// Package allornothing reserves from several limiters, or from none.
//
// Its functions get the number of reservations and what to do for each in turn, and don't allocate.
package allornothing

import "time"

// Reserve makes n reservations, in their order. If one is refused, or the function panics, it cancels the earlier ones,
// the last one first, and returns its number and error.
func Reserve(n int, reserve func(i int) error, cancel func(i int)) (refused int, err error) {
	made, complete := 0, false
	defer func() {
		if !complete {
			Cancel(made, cancel)
		}
	}()
	for ; made < n; made++ {
		if err := reserve(made); err != nil {
			return made, err
		}
	}
	complete = true
	return 0, nil
}

func Cancel(n int, cancel func(i int)) {
	for i := n - 1; i >= 0; i-- {
		cancel(i)
	}
}

// Last returns which of n reservations is due last, and its delay.
func Last(n int, delay func(i int) time.Duration) (last int, longest time.Duration) {
	for i := range n {
		if d := delay(i); d > longest {
			last, longest = i, d
		}
	}
	return last, longest
}

// Wait waits for n reservations, first for the one that is due last. If one fails, or the function panics, it cancels
// all, and returns the failed one's number and error.
func Wait(n, last int, wait func(i int) error, cancel func(i int)) (failed int, err error) {
	complete := false
	defer func() {
		if !complete {
			Cancel(n, cancel)
		}
	}()
	for k := range n {
		i := (last + k) % n
		if err := wait(i); err != nil {
			return i, err
		}
	}
	complete = true
	return 0, nil
}
