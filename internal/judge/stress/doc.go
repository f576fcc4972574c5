// Package stress uses the assembled parts at once, in real time and with the race detector, without a model: limits
// under transports, queues, keys and stores, callers that leave, servers that refuse and break. Afterwards nobody
// waits, no place is taken, no goroutine is left, and the next caller is served.
package stress
