package pacegrpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/plug/pacegrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is gRPC's own test service; what a function does not say is fine.
type service struct {
	testpb.UnimplementedTestServiceServer
	calls  pacetest.Times
	unary  func(ctx context.Context, n int) error // the number of the call, from 1
	duplex func(testpb.TestService_FullDuplexCallServer) error
}

func (s *service) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	s.calls.Note()
	if s.unary != nil {
		if err := s.unary(ctx, len(s.calls.All())); err != nil {
			return nil, err
		}
	}
	return &testpb.SimpleResponse{Payload: r.GetPayload()}, nil
}

func (s *service) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	s.calls.Note()
	if s.duplex != nil {
		return s.duplex(stream)
	}
	return nil
}

// connect serves the service with real gRPC over pipes, and returns a client.
func connect(t *testing.T, s *service, server []grpc.ServerOption, client ...grpc.DialOption) testpb.TestServiceClient {
	l := pacetest.Listen()
	srv := grpc.NewServer(server...)
	testpb.RegisterTestServiceServer(srv, s)
	go srv.Serve(l)
	client = append(client, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx, "", "") }))
	conn, err := grpc.NewClient("passthrough:///api.example.com:443", client...)
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
	})
	return testpb.NewTestServiceClient(conn)
}

// paced are the dial options of a client that is paced.
func paced(t *testing.T, by reserve.Reserver, opts ...outbound.Option) []grpc.DialOption {
	c, err := pacegrpc.NewClient(reserve.Must(outbound.New(nil, by, opts...)))
	require.NoError(t, err)
	return []grpc.DialOption{grpc.WithUnaryInterceptor(c.Unary), grpc.WithStreamInterceptor(c.Stream)}
}

// evenly is a limiter that saves up nothing.
func evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

// refusal is a server's word.
func refusal(code codes.Code, after time.Duration) error {
	s, err := status.New(code, "too many").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		return err
	}
	return s.Err()
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// since returns times as durations since begin.
func since(begin time.Time, times []time.Time) (d []time.Duration) {
	for _, t := range times {
		d = append(d, t.Sub(begin))
	}
	return d
}

func ms(n ...int) (d []time.Duration) {
	for _, n := range n {
		d = append(d, time.Duration(n)*time.Millisecond)
	}
	return d
}

func (s *service) StreamingInputCall(stream testpb.TestService_StreamingInputCallServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{})
		}
	}
}
