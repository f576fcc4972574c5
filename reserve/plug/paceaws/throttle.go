package paceaws

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// isThrottle reports whether a service says that there was too much: by the codes that the SDK
// knows, or by status 429.
func isThrottle(err error) bool {
	if err == nil {
		return false
	}
	if response := responseOf(err); response != nil && response.StatusCode == http.StatusTooManyRequests {
		return true
	}
	return retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool()
}

// answered reports whether an error is a service's answer: then the service has accepted the call
// as one of its rate.
func answered(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer)
}

func responseOf(err error) *http.Response {
	var e *smithyhttp.ResponseError
	if !errors.As(err, &e) || e.Response == nil {
		return nil
	}
	return e.Response.Response
}

// retryAfter returns for how long a service wants no other call; 0 if it does not say.
func retryAfter(now time.Time, err error) time.Duration {
	response := responseOf(err)
	if response == nil {
		return 0
	}
	if ms, err := strconv.ParseInt(response.Header.Get("X-Amz-Retry-After"), 10, 64); err == nil && ms > 0 {
		return saturated(float64(ms) * 1e6)
	}
	value := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		return saturated(seconds * 1e9)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

func saturated(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
