// Package adapt finds the rate that a server accepts, from which calls it accepts and which it refuses. It
// is arithmetic only: no clock, no lock, nothing of HTTP.
//
// # The law
//
// An event of refusal multiplies the rate by exp(-c), with c = 0.1, and each event counts. Between events the rate grows in
// time, by c in a period T. So a program whose rate is right has one event each T. That is what it pays to know.
//
// Many programs may share a limit, and only its refusals tell them of each other. In a shared bucket each call is refused
// with the same probability p, so a program at rate r has r p events a second. It stands still where r p c = c / T:
// all of them come to r = 1 / (p T). A faster one has more events and falls, a slower one has fewer and grows.
// Had the growth counted calls, every division of the limit would be stable.
//
// T is 10 s and 25 calls. The sum keeps refusals below 3 % where calls are few, and T r still grows with r, on which the
// equality rests. It is at least 25 times the stop that a refusal brings: see patience.
//
// Refusals in a row, without an acceptance between them, are one event: a window that is used up refuses many. A further one takes a fifth
// of c, since a faster program has more of them. While nothing is accepted, calls become rarer; the first acceptance ends that.
//
// What was accepted since the last event, over its time, is the rate of a bucket that was empty at both ends. No cut
// goes further than c below it, if there were eight calls. Soon after a stop it also bounds the rate from above.
//
// An event that is overdue by three periods says that the limit has moved: growth doubles with each further period.
//
// If no rate is known (the ceiling is +Inf) one call goes alone, as a probe. If the server does not
// say a rate in reply, the rate starts at 16 calls a second and doubles every 0.3 s until a refusal. A rate that grew so fast is
// cut by what it grew while a full bucket hid that it was too high. After that an event is expected within a tenth of a period, until
// one of them measures the rate.
//
// # What is remembered
//
// A rate that was right for long and that a few refusals cut far is tried again, within as long as the stop they brought, and then after twice as
// long: see memory. So a neighbour that comes once leaves no trace. Which refusals come by chance: see chance.
//
// All is in permits: a call may cost many. Numbers of calls are multiplied by the mean cost.
package adapt
