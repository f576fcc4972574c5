// Package pipeline is what package goredis can do beyond a shared.Scripter: many calls at once.
package pipeline

import "context"

// A Client sends many calls at once, for shared.Keyed.
type Client interface {
	// EvalEach runs the script of that hash and source on each key, as Eval does, at most once each, and puts the
	// results into the calls. It must return when the context ends.
	EvalEach(ctx context.Context, hash, source string, calls []*Call)
}

type Call struct {
	Key    string
	Arg    []byte
	Answer []byte
	Err    error // if there is no answer
}
