// Package keyhooks goes: use package bykey.
package keyhooks

import "github.com/nextfree/pace/reserve/internal/bykey"

// A Limiter is a bykey.Key.
type Limiter = bykey.Key
