// Package apis knows the documented limits of well-known APIs, for package outbound:
//
//	client := &http.Client{Transport: pace.Must(outbound.New(nil, nil, apis.Known()))}      // by host: GitHub, ...
//	client := &http.Client{Transport: pace.Must(outbound.New(nil, nil, apis.Zendesk(400)))} // its number is a plan's
//
// Each option holds for requests to its API's hosts; other requests are paced as without it, and so is a redirect to
// another host. Two credentials never share a limit, except where the API counts addresses or projects. The credential
// is what the API documents: the Authorization header, its own header, a parameter, or a part of the path. Only its
// hash is kept. A transport that adds the credential must be around this one, not its base.
//
// The limits are beliefs: what a response says is left, or until when, holds before them. Other limits of the
// transport hold as well. Where responses tell the limit (GitHub's 5000 an hour, X), there is no number here. All
// programs with the same credential share its limits without knowing of each other: with several, add
// [outbound.Adaptive], or share one limiter.
//
// A bad number is an error of outbound.New. Options can be used for several transports, which share nothing.
package apis
