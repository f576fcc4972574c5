// Package goredis lets shared limiters use github.com/redis/go-redis/v9: its Client, ClusterClient and Ring. It is a
// module of its own: go get github.com/nextfree/pace/reserve/shared/goredis
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	limiter, err := shared.New(goredis.Client(client), "api", policy)
//
// ContextTimeoutEnabled must be true, or a stopped server holds a caller for 5 s: shared.New refuses other clients,
// where it can see that. MaxRetries may be anything: no command of a limiter is sent twice, and so charged twice.
// The limiter's timeout bounds DialerRetries (default 5, 100 ms apart); 1 tells callers sooner that a server is
// gone.
//
// [Store] is for the policies that the script can't do: windows, and quotas by the calendar.
package goredis

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/pipeline"
)

// Client returns a client for shared limiters. c is a *redis.Client, *redis.ClusterClient or *redis.Ring, or a type
// that embeds one, whose settings are then not checked. Anything else is a *[reserve.ValueError] of shared.New and
// shared.NewKeyed. Client closes nothing.
func Client(c redis.Scripter) shared.Scripter { return &client{redis: c} }

type client struct {
	redis   redis.Scripter
	located atomic.Bool // the client knows where keys are
}

type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

const clients = "a *redis.Client, *redis.ClusterClient or *redis.Ring"

// Check returns a *[reserve.ValueError] for bad settings.
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

// Reload lets a cluster's client ask which node has which keys. By itself it asks each minute, or when a node says
// so.
func (c *client) Reload(ctx context.Context) {
	type cluster interface {
		ForEachMaster(ctx context.Context, do func(context.Context, *redis.Client) error) error
	}
	if cluster, ok := c.redis.(cluster); ok {
		// ForEachMaster waits for the answer, unlike ReloadState.
		_ = cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
	}
}

// Node returns the server of a key in a cluster or a ring, or "" before the first answer. It asks no server.
func (c *client) Node(key string) string {
	if !c.located.Load() {
		return ""
	}
	var node *redis.Client
	switch r := c.redis.(type) {
	case interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	}:
		node, _ = r.MasterForKey(context.Background(), key)
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		node, _ = r.GetShardClientForKey(key)
	}
	if node == nil {
		return ""
	}
	return node.Options().Addr
}

// Eval implements shared.Scripter. The first call sends the source: to a server that is far away a trip less.
func (c *client) Eval(ctx context.Context, script *shared.Script, key string, arg []byte) ([]byte, error) {
	if c.located.Load() {
		if answer, err := c.eval(ctx, "evalsha", script.Hash, key, arg); !unknown(err) {
			return answer, err
		}
	}
	return c.eval(ctx, "eval", script.Source, key, arg)
}

func unknown(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

func (c *client) eval(ctx context.Context, name, script, key string, arg []byte) ([]byte, error) {
	cmd := command(ctx, name, script, key, arg)
	_ = c.redis.(processor).Process(ctx, cmd) // the command has the error
	return c.result(cmd)
}

func (c *client) result(cmd once) ([]byte, error) {
	answer, err := cmd.Bytes()
	if (err == nil || unknown(err)) && !c.located.Load() {
		c.located.Store(true)
	}
	return answer, err
}

func command(ctx context.Context, name, script, key string, arg []byte) once {
	cmd := once{redis.NewStringCmd(ctx, name, script, 1, key, arg)}
	cmd.SetFirstKeyPos(3)
	return cmd
}

// EvalEach implements pipeline.Client. A server without the script gets its source once, then the rest as a
// pipeline: 128 sources one after another took 274 ms at a distance of 1 ms.
func (c *client) EvalEach(ctx context.Context, hash, source string, calls []*pipeline.Call) {
	for len(calls) > 0 {
		refused := c.send(ctx, hash, calls)
		told := map[string]bool{}
		calls = refused[:0]
		for _, call := range refused {
			if node := c.Node(call.Key); told[node] {
				calls = append(calls, call)
			} else {
				told[node] = true
				call.Answer, call.Err = c.eval(ctx, "eval", source, call.Key, call.Arg)
			}
		}
	}
}

// send sends calls as a pipeline, and returns the calls that a server without the script refused.
func (c *client) send(ctx context.Context, hash string, calls []*pipeline.Call) (refused []*pipeline.Call) {
	pipe := c.redis.(interface{ Pipeline() redis.Pipeliner }).Pipeline()
	cmds := make([]once, len(calls))
	for i, call := range calls {
		cmds[i] = command(ctx, "evalsha", hash, call.Key, call.Arg)
		_ = pipe.Process(ctx, cmds[i]) // it is only queued
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, call := range calls {
		call.Answer, call.Err = c.result(cmds[i])
		if unknown(call.Err) {
			refused = append(refused, call)
		}
	}
	return refused
}

// once is a command that go-redis does not send again.
type once struct{ *redis.StringCmd }

func (once) NoRetry() bool { return true }
