package paceconnect

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

// refusal returns the error of a call that did not go out.
func refusal(ctx context.Context, err error) error {
	return connect.NewError(connect.Code(rpc.Code(ctx, err)), err)
}

// end says to a call's attempts by which error it ended.
func end(attempts *rpc.Attempts, err error) {
	if a, ok := answer(err); ok {
		attempts.End(a)
	} else {
		attempts.Abandon()
	}
}

// answer returns what the server has said by an error; false: nothing.
func answer(err error) (a rpc.Answer, ok bool) {
	var e *connect.Error
	if !errors.As(err, &e) {
		return a, false
	}
	a.Header = e.Meta()
	var delays []time.Duration
	for _, d := range e.Details() {
		m, err := d.Value()
		if info, ok := m.(*errdetails.RetryInfo); err == nil && ok && info.GetRetryDelay() != nil {
			delays = append(delays, info.GetRetryDelay().AsDuration())
		}
	}
	told := a.Tell(delays...) || a.Header.Get("Retry-After") != ""
	switch e.Code() {
	case connect.CodeResourceExhausted:
		a.Refused = told || connect.IsWireError(err) && !tooLarge(e.Message())
	case connect.CodeUnavailable: // usually there was no server to answer
		a.Refused = told || a.Limited() || strings.HasSuffix(e.Message(), "429 Too Many Requests")
		a.Busy = true
		return a, a.Refused
	case connect.CodeCanceled, connect.CodeDeadlineExceeded:
		return a, false
	}
	return a, a.Refused || connect.IsWireError(err)
}

// tooLarge reports whether a call failed because of a message's size, which Connect finds itself.
func tooLarge(text string) bool {
	return strings.HasPrefix(text, "message ") && strings.Contains(text, "larger than configured max")
}

// errorOf returns the error of a call that a handler has refused.
func errorOf(ctx context.Context, f *rpc.Refusal) error {
	if f.After == 0 && ctx.Err() != nil {
		return connect.NewError(connect.Code(rpc.Code(ctx, ctx.Err())), ctx.Err())
	}
	e := connect.NewError(connect.Code(f.Code), errors.New(f.Text))
	add(e.Meta(), f.Quota)
	if f.After > 0 {
		if d, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(f.After)}); err == nil {
			e.AddDetail(d)
		}
		e.Meta().Set("Retry-After", strconv.FormatInt(int64(f.After/time.Second), 10))
		e.Meta().Set(rpc.Pushback, strconv.FormatInt(f.After.Milliseconds(), 10))
	}
	return e
}

func add(to, from http.Header) {
	for name, values := range from {
		to[name] = values
	}
}

func merge(a, b http.Header) http.Header {
	h := http.Header{}
	add(h, a)
	add(h, b)
	return h
}
