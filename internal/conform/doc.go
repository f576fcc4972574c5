// Package conform judges limiters. A [judge] does the same random things to a limiter and to the naive
// model (package model), and compares all that can be asked; an [Envelope] knows no model, and adds up what was
// granted. Every kind of limiter in the library is run through both, with queues that are random, that are
// all there are of some length, or that a fuzzer finds. Faults that a limiter might have are put into the model,
// to see that the judge finds them.
//
// PACE_QUEUES in the environment says how many random queues a test runs, in place of a number that takes
// seconds.
package conform
