package paceconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

func (i *Interceptor) call(ctx context.Context, r *http.Request, message connect.AnyRequest, next connect.UnaryFunc) (
	connect.AnyResponse, error,
) {
	attempts := rpc.Attempts{Transport: i.paced}
	if err := attempts.Take(r); err != nil {
		return nil, refusal(ctx, err)
	}
	defer attempts.Abandon() // if it panics
	reply, err := next(ctx, message)
	if err != nil {
		end(&attempts, err)
		return reply, err
	}
	attempts.End(rpc.Answer{Header: merge(reply.Header(), reply.Trailer())})
	return reply, nil
}

// A clientConn is a client's stream. It ends by an error, by the server's only message, by
// CloseResponse, which Connect's streams need in any case, or by its context.
type clientConn struct {
	connect.StreamingClientConn
	ctx      context.Context
	done     func() // of the context
	messages bool
	attempts rpc.Attempts

	once sync.Once // the stream waits

	mu  sync.Mutex
	err error // by which the stream, or a message, did not go out
}

// open returns a stream that waits as soon as it is used: only then its headers are known.
func (i *Interceptor) open(ctx context.Context, spec connect.Spec, next connect.StreamingClientFunc) *clientConn {
	c := &clientConn{messages: i.messages, attempts: rpc.Attempts{Transport: i.paced}}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, c.attempts.Abandon) // for callers that leave by their context
	c.ctx, c.done = ctx, func() { stop(); cancel() }
	c.StreamingClientConn = next(ctx, spec)
	return c
}

func (c *clientConn) begin() error {
	c.once.Do(func() {
		if !c.messages {
			c.take(nil)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// take waits for a turn. If it is not had, the stream is over.
func (c *clientConn) take(message any) {
	r := rpc.Request(c.ctx, c.Peer().Addr, c.Spec().Procedure, c.RequestHeader().Clone(), message)
	if err := c.attempts.Take(r); err != nil && !c.attempts.Ended() {
		c.mu.Lock()
		c.err = refusal(c.ctx, err)
		c.mu.Unlock()
		c.attempts.Abandon()
		c.done()
		c.StreamingClientConn.CloseRequest() // with its context done it ends at once; no caller waits for an answer
	}
}

func (c *clientConn) Send(message any) error {
	if err := c.begin(); err != nil {
		return err
	}
	if c.messages && !c.attempts.Ended() {
		c.take(message)
		if err := c.begin(); err != nil {
			return err
		}
	}
	err := c.StreamingClientConn.Send(message)
	if err != nil && !errors.Is(err, io.EOF) { // of that, Receive tells more
		c.attempts.Abandon()
		c.done()
	}
	return err
}

func (c *clientConn) CloseRequest() error {
	if err := c.begin(); err != nil {
		return err
	}
	return c.StreamingClientConn.CloseRequest()
}

func (c *clientConn) Receive(message any) error {
	if err := c.begin(); err != nil {
		return err
	}
	err := c.StreamingClientConn.Receive(message)
	switch {
	case err == nil && c.Spec().StreamType&connect.StreamTypeServer != 0:
		c.attempts.Accept(c.ResponseHeader)
	case err == nil || errors.Is(err, io.EOF):
		c.attempts.End(rpc.Answer{Header: c.ResponseHeader()})
	default:
		end(&c.attempts, err)
	}
	return err
}

func (c *clientConn) CloseResponse() error {
	c.attempts.Abandon()
	err := c.StreamingClientConn.CloseResponse()
	c.done()
	return err
}
