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
// event the limit has moved: growth doubles with each period.
//
// Everything counts permits; numbers of calls are multiplied by the mean cost.
//
// # Half and twice
//
// Refused % and Jain's index of 10 and of 30 programs at 100/s; what one program uses with stops of 1 s, in its first
// minute; the same with 3 % of 429s by chance. Unchanged: .8 .98, 1.7 .96, .91, .84. All figures are of one seed of a
// simulation in this package, with four volleys.
//
//	step       half .8 .99, 1.8 .96, .94, .93    twice .8 .98, 1.7 .94, .89, .94
//	shortest        1.3 .96, 2.4 .95, .91, .80         .4 .98, 1.1 .96, .91, .88
//	calls           .9 .95, 2.1 .97, .91, .84          .7 .97, 1.2 .92, .91, .84
//	hidden          .8 .98, 1.7 .96, .90, .84          .8 .98, 1.7 .96, .76, .84
//	doubling        .8 .98, 1.7 .93, .75, .86          .8 .98, 1.7 .97, .91, .84
//	fallen          .8 .98, 1.7 .96, .91, .83          2.5 .98, 5.4 .97, .82, .85
//	enough          .8 .98, 1.7 .96, .91, .90          .8 .98, 1.7 .96, .91, .74
package adapt
