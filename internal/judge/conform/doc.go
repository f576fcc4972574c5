// Package conform judges limiters. A [judge] does the same random things to a limiter and to the naive model (package
// model), and compares all that can be asked. An [Envelope] knows no model, and adds up what was granted. Every kind of
// limiter in the library is run through both. The queues are random, or all there are of some length, or found by a
// fuzzer. Faults that a limiter might have are put into the model, to see that the judge finds them.
//
// Of a limiter in a store the judge looks at what is to agree with the model. No promised time moves there, so nothing
// but the newest reservation comes back. The envelope runs it with all else.
//
// With PACE_LONG in the environment more queues are run, and longer ones. PACE_QUEUES says how many.
package conform
