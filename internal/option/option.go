// Package option has reserve's Option and the settings that it changes.
package option

import (
	"time"

	"github.com/nextfree/pace/internal/engine"
)

// An Option is a reserve.Option.
type Option struct {
	Name string // "WithBurst"
	// Set changes settings of the option's type, and reports whether they are; nil: the zero Option.
	Set func(settings any) (fits bool, err error)
}

func New[S any](name string, set func(*S) error) Option {
	return Option{Name: name, Set: func(settings any) (bool, error) {
		s, ok := settings.(*S)
		if !ok {
			return false, nil
		}
		return true, set(s)
	}}
}

type Common struct {
	Clock   engine.Clock
	MaxWait time.Duration
	Slack   time.Duration
	Name    string
}

// Paying are the settings of limiters that store permits.
type Paying struct {
	Stored  float64
	Upfront bool
}
