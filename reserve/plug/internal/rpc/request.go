package rpc

import (
	"context"
	"net/http"
	"net/url"
)

// Request describes a call as the HTTP request that it is. The procedure is "/package.Service/Method". The header may
// be changed afterwards.
func Request(ctx context.Context, authority, procedure string, header http.Header, message any) *http.Request {
	if header == nil {
		header = http.Header{}
	}
	r := &http.Request{
		Method: http.MethodPost, Proto: "HTTP/2.0", ProtoMajor: 2,
		URL: &url.URL{Scheme: "https", Host: authority, Path: procedure}, Host: authority,
		Header: header, Body: http.NoBody, Pattern: procedure,
	}
	return r.WithContext(context.WithValue(ctx, messageKey{}, message))
}

type messageKey struct{}

// Message returns the message of a call that Request has described; nil: it has none.
func Message(r *http.Request) any { return r.Context().Value(messageKey{}) }
