package pacegrpc

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

// A Client is the interceptors of gRPC clients whose calls are paced together. It comes from [NewClient]. All methods
// may be called at the same time.
type Client struct{ transport *outbound.Transport }

// NewClient returns the interceptors that pace calls as the transport paces requests. The
// transport's own base sends none of them: outbound.New(nil, limiter) is enough.
func NewClient(t *outbound.Transport) (*Client, error) {
	if t == nil {
		return nil, &reserve.ValueError{Package: "pacegrpc", Name: "NewClient", Value: nil, Want: "an outbound.Transport"}
	}
	return &Client{t}, nil
}

// Unary is a grpc.UnaryClientInterceptor.
func (c *Client) Unary(ctx context.Context, method string, message, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	attempts := rpc.Attempts{Transport: c.transport}
	if err := attempts.Take(request(ctx, conn, method, message)); err != nil {
		return refusal(ctx, err)
	}
	defer attempts.Abandon() // if it panics
	var header, trailer metadata.MD
	opts = append(opts[:len(opts):len(opts)], grpc.Header(&header), grpc.Trailer(&trailer))
	err := invoke(ctx, method, message, reply, conn, opts...)
	end(&attempts, err, header, trailer)
	return err
}

// Message returns the message that a call or a stream is about to send, for functions that say a request's cost. At the
// opening of a stream it is nil.
//
//	outbound.WithLimit(outbound.Limit{Limiter: bytes, Cost: func(r *http.Request) int {
//		return proto.Size(pacegrpc.Message(r).(proto.Message))
//	}})
func Message(r *http.Request) any { return rpc.Message(r) }

func request(ctx context.Context, conn *grpc.ClientConn, method string, message any) *http.Request {
	md, _ := metadata.FromOutgoingContext(ctx)
	return rpc.Request(ctx, authority(conn), method, headerOf(md), message)
}

// authority returns a target without its scheme: of dns:///api.example.com:443,
// api.example.com:443.
func authority(conn *grpc.ClientConn) string {
	if conn == nil { // in a test of the interceptor alone
		return ""
	}
	u, err := url.Parse(conn.CanonicalTarget())
	switch {
	case err != nil:
		return conn.Target()
	case u.Opaque != "":
		return u.Opaque
	}
	return strings.TrimPrefix(u.Path, "/")
}

func headerOf(mds ...metadata.MD) http.Header {
	h := http.Header{}
	for _, md := range mds {
		for name, values := range md {
			for _, v := range values {
				h.Add(name, v)
			}
		}
	}
	return h
}
