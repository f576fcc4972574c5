package pacegrpc_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/plug/pacegrpc"
	"github.com/nextfree/pace/reserve/window"
)

func bucket(rate, capacity float64) *reserve.Policy {
	return reserve.Must(pace.TokenBucket(rate, capacity))
}

func user(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }

// limited are the options of a server that is limited.
func limited(t *testing.T, tiers []inbound.Tier, opts ...inbound.Option) []grpc.ServerOption {
	m, err := inbound.New(tiers, opts...)
	require.NoError(t, err)
	s, err := pacegrpc.NewServer(m)
	require.NoError(t, err)
	return []grpc.ServerOption{grpc.UnaryInterceptor(s.Unary), grpc.StreamInterceptor(s.Stream)}
}

func as(t *testing.T, user string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "x-user", user)
}

// Tiers by user and method, by method, and overall: a call passes all of them, or is charged by
// none.
func TestTiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		client := connect(t, s, limited(t, []inbound.Tier{
			inbound.PerKey("user-method", inbound.Both(user, inbound.Endpoint), bucket(1./60, 2)),
			inbound.PerKey("method", inbound.Endpoint, bucket(1./60, 3)),
			inbound.Global("global", bucket(1./60, 4)),
		}))
		unary := func(user string) codes.Code {
			_, err := client.UnaryCall(as(t, user), &testpb.SimpleRequest{})
			return status.Code(err)
		}
		stream := func(user string) codes.Code {
			stream, err := client.FullDuplexCall(as(t, user))
			require.NoError(t, err)
			if _, err = stream.Recv(); err.Error() == "EOF" {
				return codes.OK
			}
			return status.Code(err)
		}
		for range 5 {
			unary("a")
		}
		require.Len(t, s.calls.All(), 2, "a has its own limit")
		require.Equal(t, codes.OK, unary("b"))
		require.Equal(t, codes.ResourceExhausted, unary("b"), "the method's")
		require.Equal(t, codes.OK, stream("a"), "another method")
		require.Equal(t, codes.ResourceExhausted, stream("b"), "everybody's")
		require.Len(t, s.calls.All(), 4)
	})
}

// A refusal says when to come back, three times over.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := []inbound.Tier{inbound.Global("global", bucket(0.1, 1))}
		client := connect(t, &service{}, limited(t, tiers, inbound.WithJitter(0)))
		var header, trailer metadata.MD
		opts := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer)}
		_, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}, opts...)
		require.NoError(t, err)
		require.Equal(t, []string{`"global";q=1;w=10`}, header.Get("ratelimit-policy"))

		_, unary := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}, opts...)
		stream, err := client.FullDuplexCall(t.Context())
		require.NoError(t, err)
		_, streamed := stream.Recv()
		for i, err := range []error{unary, streamed} {
			s := status.Convert(err)
			require.Equal(t, codes.ResourceExhausted, s.Code())
			require.Equal(t, `Too Many Requests ("global"). Try again in 10 s.`, s.Message())
			require.Equal(t, 10*time.Second, s.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
			md := []metadata.MD{trailer, stream.Trailer()}[i]
			require.Equal(t, []string{"10000"}, md.Get("grpc-retry-pushback-ms"))
			require.Equal(t, []string{`"global";r=0;t=10`}, md.Get("ratelimit"))
		}
	})
}

// A failure of a tier and an overload are Unavailable; a queue waits; a client that leaves has
// left.
func TestOtherAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := func(tier inbound.Tier, ctx context.Context) codes.Code {
			s := &service{}
			client := connect(t, s, limited(t, []inbound.Tier{tier}, inbound.WithQueue(time.Minute, 10)))
			client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
			_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{})
			return status.Code(err)
		}
		require.Equal(t, codes.Unavailable, code(inbound.GlobalBy("closed", failing{}), t.Context()))
		require.Equal(t, codes.Unavailable, code(inbound.Global("full", bucket(0.001, 1), inbound.Overload()), t.Context()))
		begin := time.Now()
		require.Equal(t, codes.OK, code(inbound.Global("queue", bucket(0.1, 1)), t.Context()))
		require.Equal(t, 10*time.Second, time.Since(begin))

		tiers := []inbound.Tier{inbound.Global("queue", bucket(0.1, 1))}
		m := reserve.Must(inbound.New(tiers, inbound.WithQueue(time.Minute, 10)))
		server := reserve.Must(pacegrpc.NewServer(m))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for _, want := range []codes.Code{codes.OK, codes.Canceled} {
			handle := func(context.Context, any) (any, error) { return nil, nil }
			_, err := server.Unary(ctx, nil, &grpc.UnaryServerInfo{}, handle)
			require.Equal(t, want, status.Code(err))
		}
	})
}

// A key function that panics takes nothing, and neither does a handler that does.
func TestServerPanics(t *testing.T) {
	limiter := evenly(10)
	panics := true
	m := reserve.Must(inbound.New([]inbound.Tier{inbound.GlobalBy("global", limiter),
		inbound.PerKey("key", func(*http.Request) (int, error) {
			if panics {
				panic("the key's")
			}
			return 0, nil
		}, bucket(1, 1))}))
	s := reserve.Must(pacegrpc.NewServer(m))
	info := &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}
	call := func() {
		s.Unary(t.Context(), nil, info, func(context.Context, any) (any, error) { panic("the handler's") })
	}
	require.PanicsWithValue(t, "the key's", call)
	require.LessOrEqual(t, time.Until(limiter.NextFree()), time.Duration(0))
	panics = false
	require.PanicsWithValue(t, "the handler's", call)
}

// What a server says, a client understands: 64 callers are paced by one that they only hear.
func TestBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		client := connect(t, s, limited(t, []inbound.Tier{inbound.Global("global", bucket(50, 10))}, inbound.WithJitter(0)),
			paced(t, evenly(50))...)
		done := make(chan error)
		for range 64 {
			go func() {
				var err error
				for range 4 {
					if _, e := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); e != nil {
						err = e
					}
				}
				done <- err
			}()
		}
		for range 64 {
			require.NoError(t, <-done)
		}
		require.Len(t, s.calls.All(), 256)
	})
}

// What no wait mends is not told to come back: a missing credential, and a cost that is never granted.
func TestRefusalsThatNoWaitMends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, &service{}, limited(t, []inbound.Tier{
			inbound.PerKey("key", func(r *http.Request) (string, error) {
				if r.Header.Get("X-User") == "" {
					return "", &inbound.UnauthorizedError{}
				}
				return "a", nil
			}, reserve.Must(window.Policy(10, time.Second)), inbound.Cost(func(*http.Request) int { return 11 })),
		}))
		_, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.Equal(t, codes.Unauthenticated, status.Code(err))
		require.Empty(t, status.Convert(err).Details())
		_, err = client.UnaryCall(as(t, "a"), &testpb.SimpleRequest{})
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.Empty(t, status.Convert(err).Details())
	})
}
