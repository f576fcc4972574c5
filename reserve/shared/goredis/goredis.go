// Package goredis lets shared limiters use github.com/redis/go-redis/v9: its Client,
// ClusterClient and Ring.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", policy)
//
// It is a module of its own, so that go-redis is required only where it is used:
//
//	go get github.com/nextfree/pace/reserve/shared/goredis
//
// # Settings of the client
//
// ContextTimeoutEnabled must be true: without it go-redis ignores the limiter's timeout, and a
// stopped server holds a caller for 5 s. shared.New refuses a client that it can see has it off.
//
// MaxRetries may be anything: go-redis repeats a command whose answer was lost, and would charge
// four times for one request; the limiter's commands are marked as not to be repeated (redirections
// of a cluster are followed, since a node that redirects has not run the command).
//
// DialerRetries (default 5, 100 ms apart) is bounded by the limiter's timeout; 1 tells callers
// sooner that a server is gone.
package goredis

import (
	"context"
	"fmt"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// Client returns a client for shared limiters. c is a *redis.Client, *redis.ClusterClient or
// *redis.Ring, or a type that embeds one (then its settings are not checked). Anything else is a
// *[reserve.ValueError] of shared.New and shared.NewKeyed: nil, pipelines, transactions and single
// connections (*redis.Conn). Client closes nothing: c stays its owner's.
func Client(c redis.Scripter) shared.Scripter { return &client{c} }

type client struct{ redis redis.Scripter }

type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// clients are those that [Client] is for.
const clients = "a *redis.Client, *redis.ClusterClient or *redis.Ring"

// Check returns what is wrong with the client's settings: a *[reserve.ValueError].
func (c *client) Check() error {
	if v := reflect.ValueOf(c.redis); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return &reserve.ValueError{Package: "goredis", Name: "client", Value: nil, Want: clients}
	}
	_, processes := c.redis.(processor)
	switch c.redis.(type) {
	case redis.Pipeliner, *redis.Conn, *redis.Tx: // a queue, or one connection whose settings can't be seen
		processes = false
	}
	if !processes {
		return &reserve.ValueError{Package: "goredis", Name: "client", Value: fmt.Sprintf("%T", c.redis), Want: clients}
	}
	obeys := true
	switch r := c.redis.(type) {
	case *redis.Client:
		obeys = r.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		obeys = r.Options().ContextTimeoutEnabled
	case *redis.Ring:
		obeys = r.Options().ContextTimeoutEnabled
	}
	if !obeys {
		const want = "true, or a server that stops holds every caller for seconds"
		return &reserve.ValueError{Package: "goredis", Name: "ContextTimeoutEnabled", Value: false, Want: want}
	}
	return nil
}

// Reload lets a cluster's client ask which node has which keys, as a limiter wants before it tries
// again whether Redis is there: by itself the client asks every minute, or when a node tells it to,
// which one that died does not.
func (c *client) Reload(ctx context.Context) {
	type cluster interface {
		ForEachMaster(ctx context.Context, do func(context.Context, *redis.Client) error) error
	}
	if cluster, ok := c.redis.(cluster); ok {
		// It asks before it does anything, and waits for the answer, where ReloadState does not.
		_ = cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
	}
}

// EvalInts implements shared.Scripter.
func (c *client) EvalInts(ctx context.Context, script *shared.Script, key string, args ...any) ([]int64, error) {
	ints, err := c.eval(ctx, "evalsha", script.Hash, key, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return c.eval(ctx, "eval", script.Source, key, args)
	}
	return ints, err
}

func (c *client) eval(ctx context.Context, name, script, key string, args []any) ([]int64, error) {
	cmd := command(ctx, name, script, key, args)
	if err := c.redis.(processor).Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}

func command(ctx context.Context, name, script, key string, args []any) once {
	all := make([]any, 0, 4+len(args))
	all = append(append(all, name, script, 1, key), args...)
	cmd := once{redis.NewIntSliceCmd(ctx, all...)}
	cmd.SetFirstKeyPos(3)
	return cmd
}

// EvalIntsEach implements shared.PipelineScripter. A cluster's client sends a pipeline to each
// node.
func (c *client) EvalIntsEach(ctx context.Context, script *shared.Script, calls []*shared.Call) {
	pipe := c.redis.(interface{ Pipeline() redis.Pipeliner }).Pipeline()
	cmds := make([]once, len(calls))
	for i, call := range calls {
		cmds[i] = command(ctx, "evalsha", script.Hash, call.Key, call.Args)
		_ = pipe.Process(ctx, cmds[i]) // it is only queued
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, call := range calls {
		call.Ints, call.Err = cmds[i].Result()
		if call.Err != nil && redis.HasErrorPrefix(call.Err, "NOSCRIPT") {
			call.Ints, call.Err = c.eval(ctx, "eval", script.Source, call.Key, call.Args)
		}
	}
}

// once is a command that go-redis does not send again when it does not know
// whether the server has run it.
type once struct{ *redis.IntSliceCmd }

func (once) NoRetry() bool { return true }
