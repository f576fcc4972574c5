package pacegrpc_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/pacegrpc"
)

// perMessage are the dial options of a client that paces each message of its streams.
func perMessage(t *testing.T, by reserve.Reserver, opts ...outbound.Option) grpc.DialOption {
	c, err := pacegrpc.NewClient(reserve.Must(outbound.New(nil, by, opts...)))
	require.NoError(t, err)
	return grpc.WithStreamInterceptor(c.Messages)
}

// echo answers each message, and fails at the last.
func echo(last int, err error) func(testpb.TestService_FullDuplexCallServer) error {
	return func(stream testpb.TestService_FullDuplexCallServer) error {
		for n := 1; ; n++ {
			if _, err := stream.Recv(); err != nil {
				return nil
			}
			if n == last {
				return err
			}
			if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		}
	}
}

// A stream takes its permits once, and a refusal in the middle of it stops the key.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{duplex: echo(3, refusal(codes.ResourceExhausted, 2*time.Second))}
		limiter := evenly(10)
		client := connect(t, s, nil, paced(t, limiter)...)
		begin := time.Now()
		for range 2 {
			stream, err := client.FullDuplexCall(t.Context())
			require.NoError(t, err)
			for n := 1; n <= 3; n++ {
				require.NoError(t, stream.Send(&testpb.StreamingOutputCallRequest{}))
				if _, err = stream.Recv(); n < 3 {
					require.NoError(t, err)
				}
			}
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
		}
		require.Equal(t, ms(0, 2100), since(begin, s.calls.All()))
	})
}

// Each message waits by its own cost, and the opening for nothing; a refusal stops the messages of
// the other streams as well.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{duplex: echo(3, refusal(codes.ResourceExhausted, 2*time.Second))}
		limiter := evenly(10)
		client := connect(t, s, nil, perMessage(t, nil, outbound.WithLimit(outbound.Limit{Limiter: limiter, Cost: func(r *http.Request) int {
			return proto.Size(pacegrpc.Message(r).(proto.Message))
		}})))
		begin := time.Now()
		a, err := client.FullDuplexCall(t.Context())
		require.NoError(t, err)
		b, err := client.FullDuplexCall(t.Context())
		require.NoError(t, err)
		message := &testpb.StreamingOutputCallRequest{Payload: &testpb.Payload{Body: []byte("x")}}
		require.Equal(t, 5, proto.Size(message))
		for n := range 3 {
			require.NoError(t, a.Send(message))
			require.Equal(t, ms(n * 500)[0], time.Since(begin))
			_, err = a.Recv()
		}
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.ErrorIs(t, a.Send(message), io.EOF, "it is over, and waits for nothing")
		require.Equal(t, ms(1000)[0], time.Since(begin))
		require.NoError(t, b.Send(message))
		require.Equal(t, ms(3500)[0], time.Since(begin), "2 s, and what the message before cost")
		require.NoError(t, b.CloseSend())
		_, err = b.Recv()
		require.NoError(t, err)
		_, err = b.Recv()
		require.ErrorIs(t, err, io.EOF)
	})
}

// A message that would come after the stream's deadline fails at once, and the stream is over.
func TestMessageDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s := &service{duplex: func(stream testpb.TestService_FullDuplexCallServer) error {
			err := echo(0, nil)(stream)
			ended <- stream.Context().Err()
			return err
		}}
		limiter := evenly(1)
		client := connect(t, s, nil, perMessage(t, limiter))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		stream, err := client.FullDuplexCall(ctx)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, stream.Send(&testpb.StreamingOutputCallRequest{}))
		}
		err = stream.Send(&testpb.StreamingOutputCallRequest{})
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, time.Second, wait.Wait)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, time.Second, time.Since(begin), "at once")
		require.Equal(t, begin.Add(2*time.Second), limiter.NextFree())
	})
}

// A message that waits when the server ends the stream does not go, as gRPC says it: the reason is
// for RecvMsg to tell.
func TestMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{duplex: func(testpb.TestService_FullDuplexCallServer) error {
			pass(time.Second)
			return status.Error(codes.NotFound, "no")
		}}
		limiter := evenly(1)
		limiter.PauseUntil(time.Now().Add(time.Hour))
		stream, err := connect(t, s, nil, perMessage(t, limiter)).FullDuplexCall(t.Context())
		require.NoError(t, err)
		sent := make(chan error)
		go func() { sent <- stream.Send(&testpb.StreamingOutputCallRequest{}) }()
		begin := time.Now()
		_, err = stream.Recv()
		require.Equal(t, codes.NotFound, status.Code(err))
		require.ErrorIs(t, <-sent, io.EOF)
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, begin.Add(time.Hour), limiter.NextFree(), "it has its permit back")
	})
}

// However a stream ends, it gives back its place in flight, and leaves the next one to be the
// probe.
func TestStreamsEnd(t *testing.T) {
	message := &testpb.StreamingOutputCallRequest{}
	for name, end := range map[string]func(stream testpb.TestService_FullDuplexCallClient, cancel func()){
		"by its context": func(_ testpb.TestService_FullDuplexCallClient, cancel func()) { cancel() },
		"by the server": func(stream testpb.TestService_FullDuplexCallClient, _ func()) {
			stream.Send(message)
			stream.CloseSend()
			for {
				if _, err := stream.Recv(); err != nil {
					return
				}
			}
		},
		"by an error of its own": func(stream testpb.TestService_FullDuplexCallClient, _ func()) {
			stream.Send(&testpb.StreamingOutputCallRequest{Payload: &testpb.Payload{Body: make([]byte, 1000)}})
		},
	} {
		for _, opts := range [][]outbound.Option{nil, {outbound.Adaptive()}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := connect(t, &service{duplex: echo(0, nil)}, nil, append(
						paced(t, evenly(math.Inf(1)), append(opts, outbound.WithMaxInFlight(1))...),
						grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(100)))...)
					for range 3 {
						ctx, cancel := context.WithCancel(t.Context())
						stream, err := client.FullDuplexCall(ctx)
						require.NoError(t, err)
						end(stream, cancel)
						synctest.Wait()
						defer cancel()
					}
				})
			})
		}
	}
	t.Run("before it is opened", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := connect(t, &service{}, nil, append(paced(t, evenly(10), outbound.WithMaxInFlight(1)),
				grpc.WithChainStreamInterceptor(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
					grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
					return nil, refusal(codes.ResourceExhausted, time.Minute)
				}))...)
			begin := time.Now()
			for range 2 {
				_, err := client.FullDuplexCall(t.Context())
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
			}
			require.Equal(t, time.Minute+100*time.Millisecond, time.Since(begin))
		})
	})
}

// A stream to which the server sends one message is over when that is there.
func TestUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, &service{}, nil, paced(t, evenly(10), outbound.WithMaxInFlight(1))...)
		for range 2 {
			stream, err := client.StreamingInputCall(t.Context())
			require.NoError(t, err)
			require.NoError(t, stream.Send(&testpb.StreamingInputCallRequest{}))
			_, err = stream.CloseAndRecv()
			require.NoError(t, err)
		}
	})
}
