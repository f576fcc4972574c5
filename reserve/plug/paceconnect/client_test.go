package paceconnect_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/plug/paceconnect"
)

var errTooMany = errors.New("too many")

// 64 callers, and a server that refuses the tenth call and says 2 s: no call for 2 s, and no herd
// afterwards.
func TestNoHerd(t *testing.T) {
	const rate, burst = 50, 5
	pushback := connect.NewError(connect.CodeResourceExhausted, errTooMany)
	pushback.Meta().Set("Grpc-Retry-Pushback-Ms", "2000")
	after := connect.NewError(connect.CodeUnavailable, errTooMany)
	after.Meta().Set("Retry-After", "2")
	for name, refused := range map[string]error{
		"RetryInfo":              refusal(connect.CodeResourceExhausted, 2*time.Second),
		"RetryInfo, unavailable": refusal(connect.CodeUnavailable, 2*time.Second),
		"pushback":               pushback,
		"Retry-After":            after,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at time.Time
				s := &service{unary: func(n int) error {
					if n == 10 {
						at = time.Now()
						return refused
					}
					return nil
				}}
				limiter := reserve.Must(pace.NewBursty(rate, pace.WithCapacity(burst)))
				c := client(pacetest.Client(t, s.handler()), unary, paced(t, limiter))
				var failed atomic.Int64
				var all sync.WaitGroup
				for range 64 {
					all.Go(func() {
						for range 4 {
							if call(t.Context(), c) != nil {
								failed.Add(1)
							}
						}
					})
				}
				all.Wait()
				require.Equal(t, int64(1), failed.Load())
				require.Len(t, s.calls.All(), 256)
				later := s.calls.All()[10:]
				require.GreaterOrEqual(t, later[0].Sub(at), 2*time.Second)
				pacetest.NeverMoreThan(t, rate+burst, time.Second, later)
				took := later[len(later)-1].Sub(at)
				ideal := 2*time.Second + 246*time.Second/rate
				require.GreaterOrEqual(t, took, ideal)
				require.Less(t, took, ideal+246*time.Second/rate/20, "nor slower, but for 4 %: see outbound/ease.go")
			})
		})
	}
}

// A call that would come after its deadline fails at once, takes nothing, and its error can be read
// both ways: unary calls and streams.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		base := pacetest.Client(t, s.handler())
		limiter := evenly(1)
		_, err := limiter.Acquire(t.Context(), 30)
		require.NoError(t, err)
		option := paced(t, limiter)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := []error{call(ctx, client(base, unary, option))}
		_, err = client(base, download, option).CallServerStream(ctx, connect.NewRequest(&text{}))
		errs = append(errs, err)
		stream := client(base, upload, option).CallClientStream(ctx)
		errs = append(errs, stream.Send(&text{}))
		_, err = stream.CloseAndReceive()
		errs = append(errs, err)
		both := client(base, upload, option).CallBidiStream(ctx)
		_, err = both.Receive()
		errs = append(errs, err)
		for _, err := range errs {
			var wait *reserve.WaitError
			require.ErrorAs(t, err, &wait)
			require.Equal(t, 30*time.Second, wait.Wait)
			require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Empty(t, both.ResponseHeader(), "nothing hangs")
		require.NoError(t, both.CloseResponse())
		require.Zero(t, time.Since(begin))
		require.Equal(t, begin.Add(30*time.Second), limiter.NextFree())

		require.Equal(t, connect.CodeUnavailable,
			connect.CodeOf(call(t.Context(), client(base, unary, paced(t, limiter, outbound.WithMaxWait(0))))))
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(call(ctx, client(base, unary, option))))
		require.Empty(t, s.calls.All())
	})
}

// A stream takes its permits once, and a refusal in the middle of it stops the key.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{download: func(stream *connect.ServerStream[text]) error {
			if err := stream.Send(&text{}); err != nil {
				return err
			}
			return refusal(connect.CodeResourceExhausted, 2*time.Second)
		}}
		c := client(pacetest.Client(t, s.handler()), download, paced(t, evenly(10), outbound.WithMaxInFlight(1)))
		begin := time.Now()
		for i, want := range []time.Duration{0, 100 * time.Millisecond, 2200 * time.Millisecond} {
			stream, err := c.CallServerStream(t.Context(), connect.NewRequest(&text{}))
			require.NoError(t, err)
			if i > 0 { // the first one is closed unread
				require.True(t, stream.Receive())
				require.False(t, stream.Receive())
				require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(stream.Err()))
			}
			require.NoError(t, stream.Close())
			require.InDelta(t, want, s.calls.All()[i].Sub(begin), float64(50*time.Millisecond))
		}
		require.Len(t, s.calls.All(), 3)
	})
}

// Each message waits by its own cost.
func TestPerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		limiter := evenly(10)
		transport := reserve.Must(outbound.New(nil, nil, outbound.WithLimit(outbound.Limit{
			Limiter: limiter,
			Cost:    func(r *http.Request) int { return len(paceconnect.Message(r).(*text).Value) },
		})))
		i, err := paceconnect.NewInterceptor(transport, nil, paceconnect.PerMessage())
		require.NoError(t, err)
		c := client(pacetest.Client(t, s.handler()), upload, connect.WithInterceptors(i))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		stream := c.CallClientStream(ctx)
		for range 2 {
			require.NoError(t, stream.Send(wrapperspb.String("hello")))
		}
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
		err = stream.Send(wrapperspb.String("hello"))
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, 500*time.Millisecond, time.Since(begin), "at once")
		_, err = stream.CloseAndReceive()
		require.ErrorAs(t, err, &wait)
		require.Equal(t, begin.Add(time.Second), limiter.NextFree())

		stream = c.CallClientStream(t.Context())
		require.NoError(t, stream.Send(wrapperspb.String("hello")))
		_, err = stream.CloseAndReceive()
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// Adaptive: the first call goes alone, and the rest at what the server says.
func TestAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := evenly(math.Inf(1))
		handler := (&service{}).handler()
		c := client(pacetest.Client(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("RateLimit-Policy", `"a";q=50;w=1`)
			handler.ServeHTTP(w, r)
		})), unary, paced(t, limiter, outbound.Adaptive()))
		require.NoError(t, call(t.Context(), c))
		require.InDelta(t, 49, limiter.Rate(), 1e-9)
	})
}

// What is no refusal slows no call. A 429 of a proxy is a refusal, and so is Envoy's word.
func TestWhatIsARefusal(t *testing.T) {
	envoy := connect.NewError(connect.CodeUnavailable, errTooMany)
	envoy.Meta().Set("X-Envoy-Ratelimited", "true")
	for name, c := range map[string]struct {
		fail    error
		opts    []connect.ClientOption
		server  []connect.HandlerOption
		script  pacetest.Answer
		refused bool
	}{
		"not found":               {fail: connect.NewError(connect.CodeNotFound, errTooMany)},
		"unavailable":             {fail: connect.NewError(connect.CodeUnavailable, errTooMany)},
		"aborted, with RetryInfo": {fail: refusal(connect.CodeAborted, time.Minute)},
		"too large to send":       {opts: []connect.ClientOption{connect.WithSendMaxBytes(1)}},
		"too large to receive":    {opts: []connect.ClientOption{connect.WithReadMaxBytes(1)}},
		"too large for it":        {server: []connect.HandlerOption{connect.WithReadMaxBytes(1)}},
		"nobody there":            {script: pacetest.Answer{Drop: true}},
		"without a time":          {fail: connect.NewError(connect.CodeResourceExhausted, errTooMany), refused: true},
		"Envoy":                   {fail: envoy, refused: true},
		"a proxy":                 {script: pacetest.Answer{Status: 429}, refused: true},
	} {
		for protocol, opt := range map[string]connect.ClientOption{"connect": nil, "gRPC-Web": connect.WithGRPCWeb()} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &service{unary: func(int) error { return c.fail }}
					server := reserve.Must(pacetest.New(pacetest.Unlimited(), pacetest.WithHandler(s.handler(c.server...))))
					server.Script(c.script)
					heard := 0
					opts := append(c.opts, paced(t, evenly(100), outbound.WithHooks(outbound.Hooks{
						Throttled: func(*http.Response, string, time.Duration) { heard++ }})))
					if opt != nil {
						opts = append(opts, opt)
					}
					require.Error(t, call(t.Context(), client(pacetest.Client(t, server), unary, opts...)))
					require.Equal(t, c.refused, heard == 1)
				})
			})
		}
	}
}

// failing is a limiter that is closed.
type failing struct{}

func (failing) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, errTooMany
}

// Bad input is the call's own error, and nothing hangs.
func TestBadInput(t *testing.T) {
	_, err := paceconnect.NewInterceptor(nil, nil)
	require.EqualError(t, err,
		"paceconnect: NewInterceptor is <nil>; want an outbound.Transport, an inbound.Middleware, or both")
	_, err = paceconnect.NewInterceptor(reserve.Must(outbound.New(nil, nil)), nil, nil)
	require.EqualError(t, err, "paceconnect: an option is <nil>; want one that is not nil")
	synctest.Test(t, func(t *testing.T) {
		base := pacetest.Client(t, (&service{}).handler())
		none := outbound.PerKey(func(*http.Request) string { return "a" }, func(string) reserve.Reserver { return nil })
		for text, c := range map[string]struct {
			option connect.ClientOption
			code   connect.Code
		}{
			"internal: outbound: the limiter of a is <nil>; want a Reserver": {
				paced(t, evenly(1), none), connect.CodeInternal,
			},
			"unavailable: too many": {paced(t, failing{}), connect.CodeUnavailable},
		} {
			err := call(t.Context(), client(base, unary, c.option))
			require.EqualError(t, err, text)
			require.Equal(t, c.code, connect.CodeOf(err))
		}
		panics := true
		key := func(*http.Request) int {
			if panics {
				panic("on purpose")
			}
			return 0
		}
		limiter := evenly(10)
		option := paced(t, nil, outbound.PerKey(key, func(int) reserve.Reserver { return limiter }), outbound.WithMaxInFlight(1))
		require.Panics(t, func() { call(t.Context(), client(base, unary, option)) })
		require.Panics(t, func() { client(base, upload, option).CallClientStream(t.Context()).Send(nil) })
		require.Equal(t, time.Now(), limiter.NextFree())
		panics = false
		behind := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
			return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { panic("on purpose") }
		}))
		require.Panics(t, func() { call(t.Context(), client(base, unary, option, behind)) })
		require.NoError(t, call(t.Context(), client(base, unary, option)))
	})
}

// The same with real HTTP/2 and gRPC's protocol, where a stream goes both ways.
func TestGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var plain http.Protocols
		plain.SetUnencryptedHTTP2(true)
		s := &service{download: func(stream *connect.ServerStream[text]) error {
			if err := stream.Send(&text{}); err != nil {
				return err
			}
			return refusal(connect.CodeResourceExhausted, 2*time.Second)
		}}
		l := pacetest.Listen()
		server := &http.Server{Handler: s.handler(), Protocols: &plain}
		go server.Serve(l)
		defer server.Close()
		transport := &http.Transport{DialContext: l.DialContext, Protocols: &plain}
		defer transport.CloseIdleConnections()
		base := &http.Client{Transport: transport}

		option := paced(t, evenly(10), outbound.WithMaxInFlight(1))
		begin := time.Now()
		for _, want := range []time.Duration{0, 2100 * time.Millisecond} {
			stream := client(base, download, option, connect.WithGRPC()).CallBidiStream(t.Context())
			require.NoError(t, stream.Send(&text{}))
			require.NoError(t, stream.CloseRequest())
			_, err := stream.Receive()
			require.NoError(t, err)
			require.Equal(t, want, time.Since(begin))
			_, err = stream.Receive()
			require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
			require.NoError(t, stream.CloseResponse())
		}
		upstream := client(base, upload, option, connect.WithGRPC()).CallClientStream(t.Context())
		require.NoError(t, upstream.Send(&text{}))
		_, err := upstream.CloseAndReceive()
		require.NoError(t, err)
		require.Equal(t, 4208328707*time.Nanosecond, time.Since(begin)) // the second refusal makes two distances of .1 s 4 % longer
	})
}
