// Package allornothing is all or nothing: of several promises, by several limiters, all are had or none.
//
// What is promised, and how, is for functions to say that get the number of a promise. They are
// called in turn, and cost no allocation.
package allornothing

import "time"

// Reserve asks for n promises, in their order. If one is refused, or the function panics, those before
// it are cancelled, the last one first, so that each can be as if it had never been. It returns the
// number and the error of the one that was refused.
func Reserve(n int, reserve func(i int) error, cancel func(i int)) (refused int, err error) {
	had, complete := 0, false
	defer func() {
		if !complete {
			Cancel(had, cancel)
		}
	}()
	for ; had < n; had++ {
		if err := reserve(had); err != nil {
			return had, err
		}
	}
	complete = true
	return 0, nil
}

// Cancel cancels n promises, the last one first.
func Cancel(n int, cancel func(i int)) {
	for i := n - 1; i >= 0; i-- {
		cancel(i)
	}
}

// Last returns the number and the delay of the one of n promises that comes last.
func Last(n int, delay func(i int) time.Duration) (last int, longest time.Duration) {
	for i := range n {
		if d := delay(i); d > longest {
			last, longest = i, d
		}
	}
	return last, longest
}

// Wait waits for n promises, the last one first: if that can't be reached, nobody need wait for the
// others. If one fails, or the function panics, all are cancelled. It returns the number and the error of the
// one that failed.
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
