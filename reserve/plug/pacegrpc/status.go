package pacegrpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

type refusedError struct {
	code codes.Code
	err  error
}

// refusal returns the error of a call that did not go out.
func refusal(ctx context.Context, err error) error {
	return &refusedError{codes.Code(rpc.Code(ctx, err)), err}
}

func (e *refusedError) Error() string              { return "pacegrpc: " + e.err.Error() }
func (e *refusedError) Unwrap() error              { return e.err }
func (e *refusedError) GRPCStatus() *status.Status { return status.New(e.code, e.Error()) }

// end says to a call's attempts how it ended.
func end(attempts *rpc.Attempts, err error, mds ...metadata.MD) {
	if a, ok := answer(err, mds); ok {
		attempts.End(a)
	} else {
		attempts.Abandon()
	}
}

// answer returns what the server has said by the end of a call; false: nothing.
func answer(err error, mds []metadata.MD) (a rpc.Answer, ok bool) {
	a.Header = headerOf(mds...)
	s, ok := status.FromError(err)
	if !ok {
		return a, false
	}
	var delays []time.Duration
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			delays = append(delays, info.GetRetryDelay().AsDuration())
		}
	}
	told := a.Tell(delays...)
	switch s.Code() {
	case codes.ResourceExhausted:
		a.Refused = told || !tooLarge(s.Message())
	case codes.Unavailable: // usually there was no server to answer
		a.Refused = told || a.Limited() || strings.Contains(s.Message(), "received from server: 429 ")
		a.Busy = true
		return a, a.Refused
	case codes.Canceled, codes.DeadlineExceeded:
		return a, false
	}
	return a, true
}

// tooLarge reports whether a call failed because of a message's size, which gRPC finds itself, here
// or at the server.
func tooLarge(text string) bool {
	return strings.HasPrefix(text, "grpc: ") || strings.HasPrefix(text, "trying to send message larger")
}
