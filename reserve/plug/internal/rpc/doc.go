// Package rpc is what the adapters to RPC libraries have in common. A call of gRPC or Connect is an HTTP request, a
// POST to its procedure. So it is paced by an [outbound.Transport] and limited by an [inbound.Middleware], with their
// keys, costs, hooks and options. An adapter says only what the request is, and what the answer means.
package rpc
