package rpc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/nextfree/pace/reserve"
)

// An Answer is what a server has said to a call. The zero Answer is that all is well.
type Answer struct {
	Refused bool          // there were too many calls
	Busy    bool          // and it is not the caller's fault: Unavailable, not ResourceExhausted
	After   time.Duration // the server wants no call before; 0: it does not say
	Final   bool          // another attempt is of no use
	Header  http.Header   // and the trailer
}

// Pushback is the trailer in which servers tell gRPC's clients when to retry, in milliseconds: see
// https://github.com/grpc/proposal/blob/master/A6-client-retries.md.
const Pushback = "Grpc-Retry-Pushback-Ms"

// Tell records the times that a server has told: delays of RetryInfo, and those in the header.
// It reports whether there is one.
func (a *Answer) Tell(delays ...time.Duration) (told bool) {
	for _, d := range delays {
		a.After, told = max(a.After, d), true
	}
	if v := a.Header.Get(Pushback); v != "" {
		ms, err := strconv.ParseInt(v, 10, 32)
		a.Final = err != nil || ms < 0 // which says that no retry is wanted
		a.After, told = max(a.After, time.Duration(ms)*time.Millisecond), true
	}
	return told
}

// Limited reports whether Envoy's rate limiter has answered. Its word is Unavailable, as that of
// servers that are not there.
func (a *Answer) Limited() bool { return a.Header.Get("X-Envoy-Ratelimited") != "" }

// response says it in HTTP.
func (a *Answer) response(r *http.Request) *http.Response {
	status := http.StatusOK
	switch {
	case a.Refused && a.Busy:
		status = http.StatusServiceUnavailable
	case a.Refused:
		status = http.StatusTooManyRequests
	}
	header := a.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if a.After > 0 {
		header.Set("Retry-After-Ms", strconv.FormatFloat(float64(a.After)/float64(time.Millisecond), 'f', -1, 64))
	}
	if a.Final {
		header.Set("X-Should-Retry", "false")
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: http.NoBody, Request: r,
	}
}

// The codes of errors, which are the same in gRPC and Connect.
const (
	Canceled          = 1
	InvalidArgument   = 3
	DeadlineExceeded  = 4
	ResourceExhausted = 8
	Internal          = 13
	Unavailable       = 14
	Unauthenticated   = 16
)

// Code returns the code of an error by which a call did not go out. It never is ResourceExhausted,
// which callers take for the server's word.
func Code(ctx context.Context, err error) uint32 {
	var wait *reserve.WaitError
	var value *reserve.ValueError
	switch {
	case errors.As(err, &wait) && !wait.Timeout():
		return Unavailable // the longest wait is the limiter's, or an option
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return DeadlineExceeded
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return Canceled
	case errors.As(err, &value):
		return Internal
	default:
		return Unavailable
	}
}
