// Package outbound is an [http.RoundTripper] that paces the calls of a program to an API, and obeys what the server
// says about its limits.
//
//	limiter, err := window.New(50, time.Second) // what the API's documentation says
//	...
//	transport, err := outbound.New(nil, limiter)
//	...
//	client := &http.Client{Transport: transport}
//
// It works with every client that takes an *http.Client or a RoundTripper.
//
//   - What to write down of an API's documentation: [New]. Well-known APIs by name: package apis.
//   - Which calls share a limit: [PerKey].
//   - What a refusal stops, and when a request is sent again: [Transport].
//   - What is understood of servers' responses: [Dialect].
//   - How a rate is found: [Adaptive].
//   - Language models: package llm.
//
// Off by default: [WithMaxInFlight], [Adaptive], [WithRetries], [WithRetryBudget] and [PauseRefused].
package outbound
