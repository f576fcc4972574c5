// Package conform judges limiters. A judge does the same random things to a limiter and to the naive model (package
// model), and compares all that can be asked. An Envelope knows no model, and adds up what was granted. Every kind of
// limiter is run through both. Faults are put into the model, to see that the judge finds them.
//
// In a store no promised time moves, so there only the newest reservation comes back.
//
// PACE_LONG runs more and longer queues, and PACE_QUEUES says how many.
package conform
