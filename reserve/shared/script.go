package shared

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// A Scripter runs scripts on Redis or Valkey: all that is asked of a client. Package
// goredis has the one for go-redis.
//
// EvalInts runs the script on one key and returns its answer, an array of integers. It must
// run it at most once (a charge that is sent again is charged again), and return when
// the context ends. It should send the script's hash (EVALSHA), and the source (EVAL) if the server
// answers NOSCRIPT. An answer that is an error is returned as one whose text begins with
// Redis's own: "WRONGTYPE", "OOM".
//
// A Scripter that also has a method Check() error is asked by New whether it is fit. One that has
// Reload(context.Context) is told when the limiter is about to try whether a server that was away
// is back: it should look where that is now, and return when the context ends.
//
// If EvalInts panics, the panic reaches its caller; other callers of the same call get an
// *[UnavailableError].
type Scripter interface {
	EvalInts(ctx context.Context, script *Script, key string, args ...any) ([]int64, error)
}

// A Script is a Lua script.
type Script struct {
	Source string
	Hash   string // SHA-1, in hexadecimal, which is what EVALSHA wants
}

func newScript(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Source: source, Hash: hex.EncodeToString(sum[:])}
}

//go:embed limiter.lua
var source string

// script is the only one, for every limiter and every operation.
var script = newScript(source)
