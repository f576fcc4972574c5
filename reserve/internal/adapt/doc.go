// Package adapt finds the rate that a server accepts, from which calls it accepts and refuses. It is arithmetic only:
// no clock, no lock, no HTTP. [New] makes a [Rate]; a [Block] handles servers that refuse everything.
//
// # The law
//
// An event of refusal multiplies the rate by exp(-c), c = 0.1. Between events the rate grows in time, by c in a period
// T. In a bucket that programs share, each call is refused with the same probability p: a program at rate r has r p
// events a second and stands still where r p c = c / T. So all come to r = 1 / (p T). (If growth counted calls, every
// division of the limit would be stable.)
//
// T is 10 s plus 25 calls, and at least 25 stops: see patience. Refusals in a row are one event; a further one takes
// c/5, up to 5 c. The rate accepted since the last event bounds the cut from below. After three periods without an
// event the limit has moved: growth doubles with each period. A rate that its user knows ([Known]) takes steps of 1/25,
// and is never lower by more than two.
//
// Everything counts permits; numbers of calls are multiplied by the mean cost.
//
// # Half and twice
//
// Refused % and Jain's index of 10 and of 30 programs at 100/s, and of 10 at windows of 1,000 in 10 s; what one program
// uses with stops of 1 s, and at an unknown rate beside 3 % of refusals by chance: 429 and 503 with a time at 50/s, 503
// at 500/s; and how many shares of a window the tenth program has in its second minute. Medians of nine seeds of a
// simulation, not kept here, with delays of 8 to 120 ms, of 20 where chance refuses.
//
//	unchanged          .8 .94, 1.8 .94, 3.1 .90, .95, .88, .93, .92, 3.1
//	step        half   .8 .95, 1.7 .96, 5.8 .88, .96, .90, .93, .91, 3.9
//	step        twice  1.0 .94, 2.3 .86, 4.0 .32, .92, .84, .86, .87, 4.6
//	shortest    half   1.3 .96, 2.5 .91, 4.9 .85, .95, .89, .93, .92, 8.3
//	shortest    twice  .4 .94, 1.1 .95, 2.2 .90, .95, .88, .93, .92, 3.5
//	unproven    half   .8 .94, 1.7 .90, 3.1 .90, .95, .90, .94, .93, 4.5
//	unproven    twice  2.4 .98, 5.3 .91, 11.5 .84, .83, .87, .84, .82, 7.5
//	hidden      twice  .8 .94, 1.8 .94, 3.1 .90, .95, .88, .88, .89, 3.1
//	inRow       half   .8 .95, 1.7 .94, 5.6 .81, .95, .90, .93, .92, 4.3
//	inRow       twice  .8 .95, 1.7 .95, 1.7 .94, .95, .89, .93, .92, 6.8
//	guesses     twice  .8 .94, 1.8 .88, 3.1 .90, .95, .88, .93, .92, 3.1
//	halving     half   .8 .93, 1.8 .92, 3.5 .79, .95, .88, .93, .92, 3.1
//	halving     twice  .8 .95, 1.7 .96, 2.6 .87, .95, .88, .93, .92, 7.6
//	doubling    half   .8 .95, 1.8 .94, 2.9 .80, .95, .91, .88, .90, 3.2
//	doubling    twice  .8 .96, 1.7 .94, 3.1 .97, .95, .58, .93, .91, 3.3
//	suspicious  twice  .8 .94, 1.7 .94, 3.1 .90, .95, .88, .82, .90, 3.1
//	volley      half   16.4 .72, 20.7 .51, 3.1 .90, .95, .89, .87, .88, 3.1
//	volley      twice  .8 .96, 1.7 .94, 3.1 .90, .95, .41, .90, .92, 3.1
//	enough      half   1.0 .84, 1.7 .94, 3.1 .90, .95, .88, .90, .90, 3.1
//	mostBudget  half   .8 .94, 1.8 .94, 3.1 .90, .95, .86, .88, .79, 3.1
//	tolerance   half   .8 .94, 1.8 .94, 3.1 .90, .95, .78, .79, .49, 3.1
//	firstRate   half   .8 .96, 1.9 .85, 3.1 .91, .95, .87, .92, .91, 3.2
//
// Half and twice of other constants in law.go, growth.go, memory.go, chance.go and meter.go change less. Without refill,
// guesses, lasting or mostShare, figures of internal/judge/matrix fall.
package adapt
