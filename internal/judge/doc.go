// Package judge is the root of what only tests need: a naive model of the arithmetic, and what is held against it
// (model, conform), the answers of Guava's RateLimiter (guava), a limiter on a fake clock (limitertest), servers and
// clients in simulated time (matrix), and figures of the library's size (figures). Nothing that a program runs imports
// it.
package judge
