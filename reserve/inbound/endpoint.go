package inbound

import (
	"errors"
	"net/http"
)

// Endpoint is a key function: the pattern "GET /items/{id}" that http.ServeMux has found, for middleware inside the
// mux. Without a pattern it returns an error.
func Endpoint(r *http.Request) (string, error) {
	if r.Pattern == "" {
		return "", errors.New(
			"inbound: the request has no pattern: use Endpoint inside of the ServeMux, or EndpointOf outside")
	}
	return r.Pattern, nil
}

// EndpointOf is [Endpoint] for middleware around the mux, at the cost of a second routing. Requests without a
// pattern share one key.
func EndpointOf(mux *http.ServeMux) (func(*http.Request) (string, error), error) {
	if mux == nil {
		return nil, valueError("EndpointOf", nil, "a ServeMux")
	}
	return func(r *http.Request) (string, error) {
		_, pattern := mux.Handler(r)
		return pattern, nil
	}, nil
}

type Pair[A, B comparable] struct {
	First  A
	Second B
}

// Both is a key function of two parts. It returns the error of either, [ErrSkip] too.
func Both[A, B comparable](
	first func(*http.Request) (A, error), second func(*http.Request) (B, error),
) func(*http.Request) (Pair[A, B], error) {
	if first == nil || second == nil {
		return nil
	}
	return func(r *http.Request) (key Pair[A, B], err error) {
		if key.First, err = first(r); err == nil {
			key.Second, err = second(r)
		}
		return key, err
	}
}
