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
// c/5. The rate accepted since the last event bounds the cut from below. After three periods without an event the limit
// has moved: growth doubles with each period. A rate that its user knows ([Known]) takes steps of 1/25, and is never
// lower by more than two.
//
// Everything counts permits; numbers of calls are multiplied by the mean cost.
//
// # Half and twice
//
// Refused % and Jain's index of 10 and of 30 programs at 100/s, and of 10 at windows of 1,000 in 10 s; what one program
// uses with stops of 1 s, and at an unknown rate beside 3 % of refusals by chance: 429 and 503 with a time at 50/s, 503
// at 500/s. Medians of three seeds of a simulation, not kept here, with delays of 8 to 120 ms, and of 5 to
// 20 where chance refuses.
// Jain's indices of neighbouring rows differ by .03 and more by chance. Constants without a row were not varied.
//
//	unchanged          .8 .94, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	step        half   .7 .98, 1.7 .95, 4.4 .99, .96, .95, .85, .88
//	step        twice  .8 .92, 1.8 .79, 2.3 .99, .91, .91, .82, .79
//	shortest    half   1.2 .88, 2.4 .88, 3.2 .98, .95, .90, .84, .86
//	shortest    twice  .4 .95, 1.1 .95, 1.0 .99, .95, .84, .84, .83
//	unproven    half   .8 .94, 1.7 .89, 2.0 .99, .95, .86, .87, .85
//	unproven    twice  2.5 .95, 5.4 .93, 11.8 .94, .83, .86, .78, .86
//	hidden      half   .8 .94, 1.7 .94, 2.0 .99, .95, .88, .85, .85
//	hidden      twice  .8 .94, 1.7 .94, 2.0 .99, .95, .88, .79, .85
//	hiddenBare  half   .8 .95, 1.7 .93, 2.1 .99, .95, .89, .84, .88
//	hiddenBare  twice  .8 .90, 1.7 .93, 1.9 .99, .95, .85, .84, .78
//	inRow       half   .8 .94, 1.6 .93, 4.3 .97, .95, .88, .84, .82
//	inRow       twice  .8 .94, 1.7 .92, 1.4 .99, .95, .86, .84, .87
//	mostRow     half   .8 .94, 1.7 .94, 3.2 .97, .95, .88, .84, .85
//	mostRow     twice  .8 .94, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	proof       half   .8 .93, 1.7 .93, 2.0 .99, .95, .90, .84, .80
//	proof       twice  .8 .94, 1.7 .91, 2.0 .99, .95, .89, .84, .85
//	refill      half   .8 .94, 1.7 .94, 2.0 .99, .95, .88, .85, .85
//	refill      twice  .8 .94, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	guesses     half   .8 .96, 1.7 .90, 2.0 .99, .95, .88, .84, .85
//	guesses     twice  .8 .93, 1.8 .80, 2.0 .99, .95, .88, .84, .85
//	halving     half   .8 .95, 1.7 .92, 2.7 .99, .95, .88, .84, .82
//	halving     twice  .8 .90, 1.7 .93, 1.8 .99, .95, .88, .84, .85
//	doubling    half   .8 .92, 1.7 .93, 2.0 .99, .94, .87, .79, .85
//	doubling    twice  .7 .96, 1.7 .92, 1.8 .99, .95, .87, .85, .77
//	overdue     half   .8 .93, 1.9 .91, 2.0 .99, .95, .87, .84, .85
//	overdue     twice  .8 .95, 1.6 .94, 2.0 .99, .94, .88, .84, .85
//	brief       half   .8 .92, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	brief       twice  .8 .93, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	paced       half   .8 .94, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	paced       twice  .8 .94, 1.7 .94, 2.0 .99, .95, .88, .84, .85
//	lasting     half   .8 .94, 1.7 .92, 2.0 .99, .95, .88, .84, .85
//	lasting     twice  .8 .94, 1.7 .94, 2.0 .99, .95, .89, .85, .85
//	suspicious  half   1.0 .94, 1.7 .91, 2.0 .99, .95, .90, .88, .85
//	suspicious  twice  .8 .93, 1.7 .93, 2.0 .99, .95, .90, .81, .76
//	mostShare   half   .8 .94, 1.7 .89, 2.0 .99, .95, .93, .84, .85
//	mostShare   twice  .8 .94, 1.7 .93, 2.0 .99, .95, .89, .84, .81
//	volley      half   .8 .94, 22.6 .16, 2.0 .99, .95, .97, .87, .84
//	volley      twice  .8 .93, 1.7 .93, 2.0 .99, .95, .65, .83, .84
//	enough      half   11.7 .12, 1.7 .94, 2.0 .99, .95, .94, .85, .83
//	enough      twice  .8 .94, 1.7 .94, 2.0 .99, .95, .81, .86, .79
//	mostHits    half   .8 .93, 1.6 .95, 2.0 .99, .95, .88, .84, .85
//	mostHits    twice  .9 .90, 1.7 .90, 2.0 .99, .95, .88, .84, .85
//	mostBudget  half   .8 .94, 1.7 .94, 2.0 .99, .95, .94, .84, .80
//	mostBudget  twice  .8 .94, 1.7 .94, 2.0 .99, .95, .91, .87, .85
//	tolerance   half   .8 .94, 1.7 .94, 2.0 .99, .95, .87, .75, .78
//	tolerance   twice  .8 .94, 1.7 .94, 2.0 .99, .95, .90, .87, .86
package adapt
