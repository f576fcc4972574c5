//go:build !queue

package pace_test

import "github.com/nextfree/pace/reserve"

const movable = false

func resume(*reserve.Limiter)          {}
func retime(*reserve.Limiter, float64) {}
