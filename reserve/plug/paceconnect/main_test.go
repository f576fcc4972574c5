package paceconnect_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/plug/paceconnect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type text = wrapperspb.StringValue

const (
	unary    = "/test.Service/Unary"
	download = "/test.Service/Download"
	upload   = "/test.Service/Upload"
)

// service answers calls as its functions say; what they do not say is fine.
type service struct {
	calls    pacetest.Times
	unary    func(n int) error // the number of the call, from 1
	download func(*connect.ServerStream[text]) error
}

func (s *service) handler(opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary, func(_ context.Context, r *connect.Request[text]) (
		*connect.Response[text], error) {
		s.calls.Note()
		if s.unary != nil {
			if err := s.unary(len(s.calls.All())); err != nil {
				return nil, err
			}
		}
		return connect.NewResponse(r.Msg), nil
	}, opts...))
	mux.Handle(download, connect.NewServerStreamHandler(download,
		func(_ context.Context, _ *connect.Request[text], stream *connect.ServerStream[text]) error {
			s.calls.Note()
			if s.download != nil {
				return s.download(stream)
			}
			return nil
		}, opts...))
	mux.Handle(upload, connect.NewClientStreamHandler(upload,
		func(_ context.Context, stream *connect.ClientStream[text]) (*connect.Response[text], error) {
			for stream.Receive() {
				s.calls.Note()
			}
			return connect.NewResponse(&text{}), stream.Err()
		}, opts...))
	return mux
}

// client returns a client of a procedure.
func client(http connect.HTTPClient, procedure string, opts ...connect.ClientOption) *connect.Client[text, text] {
	return connect.NewClient[text, text](http, "http://api.example.com"+procedure, opts...)
}

func call(ctx context.Context, c *connect.Client[text, text]) error {
	_, err := c.CallUnary(ctx, connect.NewRequest(wrapperspb.String("hello")))
	return err
}

func paced(t *testing.T, by reserve.Reserver, opts ...outbound.Option) connect.Option {
	i, err := paceconnect.NewInterceptor(reserve.Must(outbound.New(nil, by, opts...)), nil)
	require.NoError(t, err)
	return connect.WithInterceptors(i)
}

func limited(t *testing.T, tiers []inbound.Tier, opts ...inbound.Option) connect.Option {
	m, err := inbound.New(tiers, opts...)
	require.NoError(t, err)
	i, err := paceconnect.NewInterceptor(nil, m)
	require.NoError(t, err)
	return connect.WithInterceptors(i)
}

// evenly is a limiter that saves up nothing.
func evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

func bucket(rate, capacity float64) *reserve.Policy {
	return reserve.Must(pace.TokenBucket(rate, capacity))
}

// refusal is a server's word.
func refusal(code connect.Code, after time.Duration) error {
	d, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		return err
	}
	e := connect.NewError(code, errTooMany)
	e.AddDetail(d)
	return e
}
