package paceconnect_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

func user(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }

// Tiers by user and method, by method, and overall: a call passes all of them, or is charged by none.
func TestTiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		base := pacetest.Client(t, s.handler(limited(t, []inbound.Tier{
			inbound.PerKey("user-method", inbound.Both(user, inbound.Endpoint), bucket(1./60, 2)),
			inbound.PerKey("method", inbound.Endpoint, bucket(1./60, 3)),
			inbound.Global("global", bucket(1./60, 4)),
		})))
		one := func(user string) bool {
			r := connect.NewRequest(&text{})
			r.Header().Set("X-User", user)
			_, err := client(base, unary).CallUnary(t.Context(), r)
			return err == nil
		}
		stream := func(user string) bool {
			r := connect.NewRequest(&text{})
			r.Header().Set("X-User", user)
			stream, err := client(base, download).CallServerStream(t.Context(), r)
			require.NoError(t, err)
			defer stream.Close()
			stream.Receive()
			return stream.Err() == nil
		}
		for range 5 {
			one("a")
		}
		require.Len(t, s.calls.All(), 2, "a has its own limit")
		require.True(t, one("b"))
		require.False(t, one("b"), "the method's")
		require.True(t, stream("a"), "another method")
		require.False(t, stream("b"), "everybody's")
		require.Len(t, s.calls.All(), 4)
	})
}

// A refusal says when to come back, three times over, in each protocol.
func TestRefusal(t *testing.T) {
	for protocol, opts := range map[string][]connect.ClientOption{"connect": nil, "gRPC-Web": {connect.WithGRPCWeb()}} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client(pacetest.Client(t, (&service{}).handler(limited(t, []inbound.Tier{
					inbound.Global("global", bucket(0.1, 1))}, inbound.WithJitter(0)))), unary, opts...)
				r, err := c.CallUnary(t.Context(), connect.NewRequest(&text{}))
				require.NoError(t, err)
				require.Equal(t, `"global";q=1;w=10`, r.Header().Get("RateLimit-Policy"))

				var e *connect.Error
				require.ErrorAs(t, call(t.Context(), c), &e)
				require.Equal(t, connect.CodeResourceExhausted, e.Code())
				require.Equal(t, `Too Many Requests ("global"). Try again in 10 s.`, e.Message())
				info, err := e.Details()[0].Value()
				require.NoError(t, err)
				require.Equal(t, 10*time.Second, info.(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
				require.Equal(t, "10", e.Meta().Get("Retry-After"))
				require.Equal(t, "10000", e.Meta().Get("Grpc-Retry-Pushback-Ms"))
				require.Equal(t, `"global";r=0;t=10`, e.Meta().Get("RateLimit"))
			})
		})
	}
}

// A failure of a tier is Unavailable; a queue waits; a client that leaves it has left.
func TestOtherAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := []inbound.Tier{inbound.GlobalBy("closed", failing{})}
		closed := client(pacetest.Client(t, (&service{}).handler(limited(t, tiers))), unary)
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(call(t.Context(), closed)))

		s := &service{}
		queue := client(pacetest.Client(t, s.handler(limited(t, []inbound.Tier{inbound.Global("queue", bucket(0.1, 1))},
			inbound.WithQueue(time.Minute, 10)))), unary)
		begin := time.Now()
		for range 2 {
			require.NoError(t, call(t.Context(), queue))
		}
		require.Equal(t, 10*time.Second, time.Since(begin))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(call(ctx, queue)))
		require.Len(t, s.calls.All(), 2)
	})
}
