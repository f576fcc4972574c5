package paceconnect

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

// handle has a handler answer a call that has one answer, if the limits let it.
func (i *Interceptor) handle(ctx context.Context, message connect.AnyRequest, next connect.UnaryFunc) (
	reply connect.AnyResponse, err error,
) {
	r := incoming(ctx, message.Spec(), message.Peer(), message.Header(), message.Any())
	refused := rpc.Pass(i.limits, r, func(quota http.Header) {
		if reply, err = next(ctx, message); err == nil {
			add(reply.Header(), quota)
		}
	})
	if refused != nil {
		return nil, errorOf(ctx, refused)
	}
	return reply, err
}

// stream has a handler answer a stream, if the limits let it.
func (i *Interceptor) stream(ctx context.Context, conn connect.StreamingHandlerConn,
	next connect.StreamingHandlerFunc,
) (err error) {
	r := incoming(ctx, conn.Spec(), conn.Peer(), conn.RequestHeader(), nil)
	refused := rpc.Pass(i.limits, r, func(quota http.Header) {
		add(conn.ResponseHeader(), quota)
		err = next(ctx, conn)
	})
	if refused != nil {
		return errorOf(ctx, refused)
	}
	return err
}

// incoming describes a call.
func incoming(ctx context.Context, spec connect.Spec, peer connect.Peer, header http.Header,
	message any,
) *http.Request {
	r := rpc.Request(ctx, header.Get("Host"), spec.Procedure, header.Clone(), message)
	r.RemoteAddr = peer.Addr
	return r
}
