// Package conform judges limiters. A [judge] does the same random things to a limiter and to the naive
// model (package model), and compares all that can be asked; an [Envelope] knows no model, and adds up what was
// granted. Every kind of limiter in the library is run through both, with queues that are random, that are
// all there are of some length, or that a fuzzer finds. Faults that a limiter might have are put into the model,
// to see that the judge finds them.
//
// With PACE_LONG in the environment more queues are run, and longer ones; PACE_QUEUES says how many.
package conform
