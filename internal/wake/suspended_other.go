//go:build !linux

package wake

import "time"

// Suspended returns 0: here a suspension can't be told from a wall clock that was set. (On Windows the monotonic clock
// goes on meanwhile.)
func Suspended() (least, most time.Duration) { return 0, 0 }
