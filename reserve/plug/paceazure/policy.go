// Package paceazure paces the requests of the Azure SDK for Go, retries included: [New]'s is for the PerRetryPolicies
// of an azcore.ClientOptions.
//
// It is package outbound as a policy of azcore's pipeline, and has all of its options: keys, limits
// with costs of their own, adaptation, hooks. The server's words are heard: Retry-After,
// retry-after-ms, x-ms-retry-after-ms.
package paceazure

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// A Policy is a policy.Policy that makes each request wait for its permits. It comes from [New].
// Many clients may use it at the same time, and share the limiter then.
type Policy struct{ transport *outbound.Transport }

// New returns a policy that sends requests when by has permits for them. The options are those of [outbound.New]. If by
// is nil there must be options: [outbound.PerKey], [outbound.WithLimit] or [outbound.Adaptive] say what paces the
// requests then. It returns a *[reserve.ValueError] if by is nil without options, or a nil pointer, and what
// outbound.New returns for a bad option.
//
// The SDK tries refused requests again itself, and each attempt passes the policies of
// PerRetryPolicies, so [outbound.WithRetries] is not needed.
func New(by reserve.Reserver, opts ...outbound.Option) (*Policy, error) {
	if by == nil && len(opts) == 0 || by != nil && isnil.Value(by) {
		return nil, &reserve.ValueError{Package: "paceazure", Name: "the limiter", Value: nil, Want: "a limiter"}
	}
	transport, err := outbound.New(next{}, by, opts...)
	if err != nil {
		return nil, err
	}
	return &Policy{transport}, nil
}

// Do sends a request to the next policy, when it has its permits. If they would come too late it
// returns at once an error that is a *[reserve.WaitError], and that the SDK does not try again.
func (p *Policy) Do(r *policy.Request) (*http.Response, error) {
	ctx := context.WithValue(r.Raw().Context(), next{}, r)
	response, err := p.transport.RoundTrip(r.Raw().WithContext(ctx))
	if sent := new(sentError); errors.As(err, &sent) {
		return response, sent.error // for the SDK to judge
	}
	if err != nil {
		return nil, &Error{Err: err}
	}
	return response, nil
}

// next sends a request to the policy behind; and it is the key of its policy.Request in the
// context.
type next struct{}

func (next) RoundTrip(r *http.Request) (*http.Response, error) {
	of := r.Context().Value(next{}).(*policy.Request)
	if r.Body != nil && r.Body != of.Raw().Body { // another attempt: see outbound.WithRetries
		if err := of.RewindBody(); err != nil {
			return nil, &sentError{err}
		}
	}
	response, err := of.Next()
	if err != nil {
		err = &sentError{err}
	}
	return response, err
}

// A sentError is an error of a request that had its permits.
type sentError struct{ error }

// An Error says why a request was not sent.
type Error struct{ Err error }

func (e *Error) Error() string { return "paceazure: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// NonRetriable says to the SDK that it should not send the request again: it would have to wait for
// no less then.
func (*Error) NonRetriable() {}
