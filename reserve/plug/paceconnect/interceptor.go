package paceconnect

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

// An Interceptor is a connect.Interceptor that paces a client's calls and limits a handler's. It comes from
// [NewInterceptor]. All methods may be called at the same time.
type Interceptor struct {
	paced  *outbound.Transport // nil: clients are not paced
	limits *inbound.Middleware // nil: handlers are not limited
	settings
}

// An Option changes one setting of [NewInterceptor].
type Option func(*settings) error

type settings struct{ messages bool }

// PerMessage has each message that a client's stream sends wait for permits, and the stream itself
// for none. Default: the stream waits, once.
func PerMessage() Option { return func(s *settings) error { s.messages = true; return nil } }

// NewInterceptor returns an interceptor that paces clients as the transport paces requests, and
// limits handlers as the middleware does. Either may be nil, for the side that it is not for. The
// transport's own base sends none of the calls: outbound.New(nil, limiter) is enough.
func NewInterceptor(paced *outbound.Transport, limits *inbound.Middleware, opts ...Option) (*Interceptor, error) {
	if paced == nil && limits == nil {
		return nil, &reserve.ValueError{
			Package: "paceconnect", Name: "NewInterceptor", Value: nil,
			Want: "an outbound.Transport, an inbound.Middleware, or both",
		}
	}
	i := &Interceptor{paced: paced, limits: limits}
	for _, opt := range opts {
		if opt == nil {
			return nil, &reserve.ValueError{Package: "paceconnect", Name: "an option", Value: nil, Want: "one that is not nil"}
		}
		if err := opt(&i.settings); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (i *Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, message connect.AnyRequest) (connect.AnyResponse, error) {
		spec := message.Spec()
		switch {
		case spec.IsClient && i.paced != nil:
			r := rpc.Request(ctx, message.Peer().Addr, spec.Procedure, message.Header().Clone(), message.Any())
			return i.call(ctx, r, message, next)
		case !spec.IsClient && i.limits != nil:
			return i.handle(ctx, message, next)
		}
		return next(ctx, message)
	}
}

func (i *Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	if i.paced == nil {
		return next
	}
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return i.open(ctx, spec, next)
	}
}

func (i *Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	if i.limits == nil {
		return next
	}
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return i.stream(ctx, conn, next)
	}
}

// Message returns the message that a call or a stream is about to send, for functions that say a request's cost. At the
// opening of a stream it is nil.
func Message(r *http.Request) any { return rpc.Message(r) }
