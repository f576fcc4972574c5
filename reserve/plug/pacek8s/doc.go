// Package pacek8s puts pace's limiters where Kubernetes' client-go takes a limiter. These places are rest.Config, for
// the requests to the API server, and a workqueue, for the items that a controller tries again.
//
// The package names no type of client-go's, so it fits every version from v0.31.0, in which
// workqueues have types.
package pacek8s

import (
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
)

// checked returns an error if a limiter is nil, or a nil pointer of a type that is a limiter.
func checked(name string, by reserve.Reserver) error {
	if isnil.Value(by) {
		return &reserve.ValueError{Package: "pacek8s", Name: name, Value: nil, Want: "a limiter"}
	}
	return nil
}
