package pacegrpc_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/plug/pacegrpc"
)

// 64 callers, and a server that refuses the tenth call and says 2 s: no call for 2 s, and no herd
// afterwards.
func TestNoHerd(t *testing.T) {
	const rate, burst = 50, 5
	for name, refuse := range map[string]func(context.Context) error{
		"RetryInfo":              func(context.Context) error { return refusal(codes.ResourceExhausted, 2*time.Second) },
		"RetryInfo, Unavailable": func(context.Context) error { return refusal(codes.Unavailable, 2*time.Second) },
		"pushback": func(ctx context.Context) error {
			grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "2000"))
			return status.Error(codes.ResourceExhausted, "too many")
		},
		"the longer of both": func(ctx context.Context) error {
			grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "10"))
			return refusal(codes.ResourceExhausted, 2*time.Second)
		},
		"headers": func(ctx context.Context) error {
			grpc.SetHeader(ctx, metadata.Pairs("retry-after", "2"))
			return status.Error(codes.ResourceExhausted, "too many")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused time.Time
				s := &service{unary: func(ctx context.Context, n int) error {
					if n == 10 {
						refused = time.Now()
						return refuse(ctx)
					}
					return nil
				}}
				limiter := reserve.Must(pace.NewBursty(rate, pace.WithCapacity(burst)))
				client := connect(t, s, nil, paced(t, limiter)...)
				var failed atomic.Int64
				var all sync.WaitGroup
				for range 64 {
					all.Go(func() {
						for range 4 {
							if _, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
								failed.Add(1)
							}
						}
					})
				}
				all.Wait()
				require.Equal(t, int64(1), failed.Load())
				require.Len(t, s.calls.All(), 256)
				var after []time.Time
				for _, at := range s.calls.All() {
					if at.After(refused) {
						after = append(after, at)
					}
				}
				require.GreaterOrEqual(t, after[0].Sub(refused), 2*time.Second)
				pacetest.NeverMoreThan(t, rate+burst, time.Second, after)
				took := after[len(after)-1].Sub(refused)
				ideal := 2*time.Second + 246*time.Second/rate
				require.GreaterOrEqual(t, took, ideal)
				require.Less(t, took, ideal+246*time.Second/rate/20, "nor slower, but for 4 %: see outbound/ease.go")
			})
		})
	}
}

// A call that would come after its deadline fails at once, takes nothing, and its error can be read
// both ways.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		limiter := evenly(1)
		client := connect(t, s, nil, paced(t, limiter, outbound.WithMaxWait(time.Minute))...)
		_, err := limiter.Acquire(t.Context(), 30)
		require.NoError(t, err)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, unary := client.UnaryCall(ctx, &testpb.SimpleRequest{})
		_, stream := client.FullDuplexCall(ctx)
		for _, err := range []error{unary, stream} {
			var wait *reserve.WaitError
			require.ErrorAs(t, err, &wait)
			require.Equal(t, 30*time.Second, wait.Wait)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		}
		require.Zero(t, time.Since(begin))
		require.Equal(t, begin.Add(30*time.Second), limiter.NextFree())

		_, err = limiter.Reserve(t.Context(), 60)
		require.NoError(t, err)
		_, err = client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.Equal(t, codes.Unavailable, status.Code(err), "the longest wait is nobody's deadline")

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = connect(t, s, nil, paced(t, limiter)...).UnaryCall(ctx, &testpb.SimpleRequest{})
		require.Equal(t, codes.Canceled, status.Code(err))
		require.Empty(t, s.calls.All())
	})
}

// Keys: by method, by authority, by metadata. One that is stopped does not slow another.
func TestKeys(t *testing.T) {
	policy := reserve.Must(pace.Bursty(1000, pace.WithBurst(0)))
	policies := func(string) (*reserve.Policy, error) { return policy, nil }
	method := func(r *http.Request) string { return r.URL.Path }
	tenant := func(r *http.Request) string { return r.Header.Get("X-Tenant") }
	for name, c := range map[string]struct {
		key  func(*http.Request) string
		keys [2]string
		same bool // the duplex call has the same key as the unary one
	}{
		"method": {method,
			[2]string{"/grpc.testing.TestService/UnaryCall", "/grpc.testing.TestService/FullDuplexCall"}, false},
		"authority": {outbound.Host, [2]string{"api.example.com:443", "api.example.com:443"}, true},
		"metadata":  {tenant, [2]string{"a", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{unary: func(context.Context, int) error { return refusal(codes.ResourceExhausted, time.Minute) }}
				var seen []string
				key := func(r *http.Request) string {
					seen = append(seen, c.key(r))
					return c.key(r)
				}
				client := connect(t, s, nil, paced(t, nil, outbound.PerKey(key, keyed.New(policies).For))...)
				a := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a")
				b := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "b")
				_, err := client.UnaryCall(a, &testpb.SimpleRequest{})
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				begin := time.Now()
				stream, err := client.FullDuplexCall(b)
				require.NoError(t, err)
				_, err = stream.Recv()
				require.Error(t, err)
				if c.same {
					require.InDelta(t, time.Minute, time.Since(begin), float64(10*time.Millisecond))
				} else {
					require.Less(t, time.Since(begin), 10*time.Millisecond)
				}
				require.Equal(t, c.keys[:], seen)
			})
		})
	}
}

// Adaptive: with no rate known, the first call goes alone, and the rest at what the server says or
// accepts.
func TestAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{unary: func(ctx context.Context, _ int) error {
			return grpc.SetHeader(ctx, metadata.Pairs("ratelimit-policy", `"a";q=50;w=1`))
		}}
		limiter := evenly(math.Inf(1))
		client := connect(t, s, nil, paced(t, limiter, outbound.Adaptive())...)
		_, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.NoError(t, err)
		require.InDelta(t, 49, limiter.Rate(), 1e-9)
	})
	synctest.Test(t, func(t *testing.T) {
		server := reserve.Must(pace.NewTokenBucket(50, 10))
		s := &service{}
		refused := 0
		s.unary = func(context.Context, int) error {
			if !server.Allow() {
				refused++
				return status.Error(codes.ResourceExhausted, "too many")
			}
			return nil
		}
		limiter := evenly(200)
		client := connect(t, s, nil, paced(t, limiter, outbound.Adaptive())...)
		for range 1000 {
			client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		}
		require.InDelta(t, 50, limiter.Rate(), 10)
		require.Less(t, refused, 100)
	})
}

// What is no refusal slows no call.
func TestNoRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(context.Context) error
		opts []grpc.ServerOption
		call []grpc.CallOption
		code codes.Code
	}{
		"not found": {fail: func(context.Context) error { return status.Error(codes.NotFound, "no") }, code: codes.NotFound},
		"aborted, with RetryInfo": {fail: func(context.Context) error { return refusal(codes.Aborted, time.Minute) },
			code: codes.Aborted},
		"unavailable": {fail: func(context.Context) error { return status.Error(codes.Unavailable, "no") },
			code: codes.Unavailable},
		"too large to send":    {call: []grpc.CallOption{grpc.MaxCallSendMsgSize(1)}, code: codes.ResourceExhausted},
		"too large to answer":  {call: []grpc.CallOption{grpc.MaxCallRecvMsgSize(1)}, code: codes.ResourceExhausted},
		"too large to receive": {opts: []grpc.ServerOption{grpc.MaxRecvMsgSize(1)}, code: codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{unary: func(ctx context.Context, _ int) error {
					if c.fail == nil {
						return nil
					}
					return c.fail(ctx)
				}}
				limiter := evenly(100)
				var heard int
				client := connect(t, s, c.opts, paced(t, limiter, outbound.Adaptive(), outbound.WithHooks(outbound.Hooks{
					Throttled: func(*http.Response, string, time.Duration) { heard++ }}))...)
				message := &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte("hello")}}
				_, err := client.UnaryCall(t.Context(), message, c.call...)
				require.Equal(t, c.code, status.Code(err))
				require.Zero(t, heard)
				require.Equal(t, 100., limiter.Rate())
				require.LessOrEqual(t, time.Until(limiter.NextFree()), 10*time.Millisecond)
			})
		})
	}
}

// Envoy's rate limiter answers Unavailable; a negative pushback wants no retry.
func TestOtherRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{unary: func(ctx context.Context, n int) error {
			if n == 1 {
				grpc.SetTrailer(ctx, metadata.Pairs("x-envoy-ratelimited", "true"))
				return status.Error(codes.Unavailable, "no")
			}
			grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
			return status.Error(codes.ResourceExhausted, "grpc: its own words")
		}}
		limiter := evenly(100)
		var heard []string
		client := connect(t, s, nil, paced(t, limiter, outbound.WithHooks(outbound.Hooks{
			Throttled: func(r *http.Response, _ string, _ time.Duration) {
				heard = append(heard, r.Status+r.Header.Get("X-Should-Retry"))
			}}))...)
		for range 2 {
			_, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
			require.Error(t, err)
		}
		require.Equal(t, []string{"Service Unavailable", "Too Many Requestsfalse"}, heard)
	})
}

// So is a 429 of a proxy in between, which gRPC tells as Unavailable.
func TestProxy(t *testing.T) {
	heard := 0
	c, err := pacegrpc.NewClient(reserve.Must(outbound.New(nil, evenly(100), outbound.WithHooks(outbound.Hooks{
		Throttled: func(*http.Response, string, time.Duration) { heard++ }}))))
	require.NoError(t, err)
	for _, text := range []string{"unexpected HTTP status code received from server: 429 (Too Many Requests)",
		"unexpected HTTP status code received from server: 502 (Bad Gateway)"} {
		c.Unary(t.Context(), "/a.B/C", nil, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return status.Error(codes.Unavailable, text)
			})
		require.Equal(t, 1, heard)
	}
}

// failing is a limiter that is closed.
type failing struct{}

var errClosed = errors.New("the limiter is closed")

func (failing) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, errClosed
}

// Bad input is the call's own error, and nothing hangs.
func TestBadInput(t *testing.T) {
	_, err := pacegrpc.NewClient(nil)
	require.EqualError(t, err, "pacegrpc: NewClient is <nil>; want an outbound.Transport")
	_, err = pacegrpc.NewServer(nil)
	require.EqualError(t, err, "pacegrpc: NewServer is <nil>; want an inbound.Middleware")
	for name, c := range map[string]struct {
		by   reserve.Reserver
		opts []outbound.Option
		code codes.Code
		text string
	}{
		"a key without a limiter": {opts: []outbound.Option{
			outbound.PerKey(outbound.Host, func(string) reserve.Reserver { return nil }),
		}, code: codes.Internal, text: "pacegrpc: outbound: the limiter of api.example.com:443 is <nil>; want a Reserver"},
		"a limiter that is closed": {by: failing{}, code: codes.Unavailable, text: "pacegrpc: the limiter is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, &service{}, nil, paced(t, c.by, c.opts...)...)
				_, unary := client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
				_, stream := client.FullDuplexCall(t.Context())
				for _, err := range []error{unary, stream} {
					require.EqualError(t, err, c.text)
					require.Equal(t, c.code, status.Code(err))
				}
			})
		})
	}
}

// A key function, a cost function or a hook that panics does so in its own call; nothing is lost.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := evenly(10)
		var key, cost, hook bool
		maybe := func(b bool) {
			if b {
				panic("on purpose")
			}
		}
		s := &service{unary: func(context.Context, int) error { return refusal(codes.ResourceExhausted, time.Second) }}
		client := connect(t, s, nil, paced(t, nil, outbound.WithMaxInFlight(1),
			outbound.WithLimit(outbound.Limit{
				Keyed: func(*http.Request) (any, reserve.Reserver) { maybe(key); return 0, limiter },
				Cost:  func(*http.Request) int { maybe(cost); return 1 },
			}),
			outbound.WithHooks(outbound.Hooks{Throttled: func(*http.Response, string, time.Duration) { maybe(hook) }}))...)
		call := func() { client.UnaryCall(t.Context(), &testpb.SimpleRequest{}) }
		open := func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client.FullDuplexCall(ctx)
		}
		key = true
		require.Panics(t, call)
		require.Panics(t, open)
		key, cost = false, true
		require.Panics(t, call)
		require.Panics(t, open)
		require.Equal(t, time.Now(), limiter.NextFree())
		cost, hook = false, true
		require.Panics(t, call)
		hook = false
		begin := time.Now()
		call()
		call()
		open()
		synctest.Wait()
		call()
		require.Less(t, time.Since(begin), 5*time.Second, "each had the only place")
	})
}

// An error that is no answer leaves the next call to be the probe.
func TestNoAnswer(t *testing.T) {
	limiter := evenly(math.Inf(1))
	c, err := pacegrpc.NewClient(reserve.Must(outbound.New(nil, limiter, outbound.Adaptive())))
	require.NoError(t, err)
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.NotFound} {
		require.Equal(t, math.Inf(1), limiter.Rate())
		c.Unary(t.Context(), "/a.B/C", nil, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return status.Error(code, "no")
			})
	}
	require.Equal(t, 16., limiter.Rate(), "not found is an answer")
}

// What panics behind the interceptors leaves its place to others.
func TestPanicsBehind(t *testing.T) {
	c, err := pacegrpc.NewClient(reserve.Must(outbound.New(nil, nil, outbound.WithMaxInFlight(1))))
	require.NoError(t, err)
	for range 2 {
		require.PanicsWithValue(t, "invoker", func() {
			c.Unary(t.Context(), "/a.B/C", nil, nil, nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic("invoker") })
		})
		require.PanicsWithValue(t, "streamer", func() {
			c.Stream(t.Context(), &grpc.StreamDesc{}, nil, "/a.B/C", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn,
				string, ...grpc.CallOption) (grpc.ClientStream, error) {
				panic("streamer")
			})
		})
	}
}

// A call that costs less than 1 is not limited, as in HTTP.
func TestNoCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := evenly(10)
		limiter.PauseUntil(time.Now().Add(time.Hour))
		free := outbound.WithLimit(outbound.Limit{Limiter: limiter, Cost: func(*http.Request) int { return -1 }})
		client := connect(t, &service{}, nil, paced(t, nil, free)...)
		begin := time.Now()
		_, err := client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.NoError(t, err)
		require.Zero(t, time.Since(begin))
	})
}

// A call that is out is in the transport's Snapshot until the server has answered.
func TestCallsInFlightAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := reserve.Must(pace.NewBursty(10))
		transport := reserve.Must(outbound.New(nil, limiter))
		client := reserve.Must(pacegrpc.NewClient(transport))
		inFlight := func() int { return transport.Snapshot().Limits[0].InFlight }
		during := 0
		s := &service{
			unary:  func(context.Context, int) error { during = inFlight(); return nil },
			duplex: func(testpb.TestService_FullDuplexCallServer) error { during = inFlight(); return nil },
		}
		server := connect(t, s, nil, grpc.WithUnaryInterceptor(client.Unary), grpc.WithStreamInterceptor(client.Stream))
		_, err := server.UnaryCall(t.Context(), &testpb.SimpleRequest{})
		require.NoError(t, err)
		require.Equal(t, 1, during)
		require.Zero(t, inFlight())

		during = 0
		stream, err := server.FullDuplexCall(t.Context())
		require.NoError(t, err)
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 1, during)
		require.Zero(t, inFlight())
	})
}
