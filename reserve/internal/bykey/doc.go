// Package bykey is the one implementation of limiters by key: reserve/keyed gives its [Limiters] to users, as reserve gives
// engine's Limiter. Package inbound uses it as it is.
package bykey
