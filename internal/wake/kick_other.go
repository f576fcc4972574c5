//go:build !linux

package wake

import "time"

// Kicks do nothing: the runtimes of the other systems wait with a finer clock than milliseconds.
type (
	kicker struct{}
	kick   struct{}
)

var kicks kicker

func (kicker) set(*kick, time.Duration) {}
func (kicker) clear(*kick)              {}
