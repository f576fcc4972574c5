package pacegrpc

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

// A Server is the interceptors of gRPC servers whose calls are limited together. It comes from [NewServer]. All methods
// may be called at the same time.
type Server struct{ limits *inbound.Middleware }

// NewServer returns the interceptors that let calls pass as the middleware lets requests.
func NewServer(limits *inbound.Middleware) (*Server, error) {
	if limits == nil {
		return nil, &reserve.ValueError{Package: "pacegrpc", Name: "NewServer", Value: nil, Want: "an inbound.Middleware"}
	}
	return &Server{limits}, nil
}

// Unary is a grpc.UnaryServerInterceptor.
func (s *Server) Unary(ctx context.Context, message any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (
	reply any, err error,
) {
	refused := rpc.Pass(s.limits, incoming(ctx, info.FullMethod, message), func(quota http.Header) {
		grpc.SetHeader(ctx, metadataOf(quota)) // it fails where there is no call, as in tests
		reply, err = handle(ctx, message)
	})
	if refused == nil {
		return reply, err
	}
	grpc.SetTrailer(ctx, trailerOf(refused))
	return nil, statusOf(ctx, refused)
}

// Stream is a grpc.StreamServerInterceptor: the opening of a stream is a call, its messages are
// not.
func (s *Server) Stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (
	err error,
) {
	ctx := stream.Context()
	refused := rpc.Pass(s.limits, incoming(ctx, info.FullMethod, nil), func(quota http.Header) {
		stream.SetHeader(metadataOf(quota))
		err = handle(server, stream)
	})
	if refused == nil {
		return err
	}
	stream.SetTrailer(trailerOf(refused))
	return statusOf(ctx, refused)
}

func incoming(ctx context.Context, method string, message any) *http.Request {
	md, _ := metadata.FromIncomingContext(ctx)
	h := headerOf(md)
	r := rpc.Request(ctx, h.Get(":authority"), method, h, message)
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		r.RemoteAddr = p.Addr.String()
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			r.TLS = &info.State
		}
	}
	return r
}

func metadataOf(h http.Header) metadata.MD {
	md := metadata.MD{}
	for name, values := range h {
		md[strings.ToLower(name)] = values
	}
	return md
}

// trailerOf returns what a refused client is told besides the status.
func trailerOf(f *rpc.Refusal) metadata.MD {
	md := metadataOf(f.Quota)
	if f.After > 0 {
		md.Set(rpc.Pushback, strconv.FormatInt(f.After.Milliseconds(), 10))
	}
	return md
}

func statusOf(ctx context.Context, f *rpc.Refusal) error {
	if f.After == 0 && ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	s := status.New(codes.Code(f.Code), f.Text)
	if f.After == 0 {
		return s.Err()
	}
	if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(f.After)}); err == nil {
		s = with
	}
	return s.Err()
}
