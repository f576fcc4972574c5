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
// T is 10 s plus 25 calls, or 25 stops if that is longer, but 25 s of them until a second such stop has come: see
// patience. Refusals in a row are one event; a further one takes c/5, up to 5 c. The rate accepted since the last event
// bounds the cut from below. After three periods without an event the limit has moved: growth doubles with each
// period, none of which counts as more than two minutes. A rate that its user knows ([Known]) takes steps of 1/25, and
// is never lower by more than two.
//
// Where p is not the programs' doing, a backend is dead or others do not yield, a program starves at 1 / (p T). So it
// may also believe that a share of the calls is refused at any rate, and such refusals are no events. See imposed.
//
// The rate that was right is kept for ten minutes, and tried again: see memory.
//
// Everything counts permits; numbers of calls are multiplied by the mean cost.
//
// # Half and twice
//
// Simulated by the rows of internal/judge/matrix. The columns, at an unknown rate unless they say told:
//
//  1. beside two others at a bucket of 20/s, what is got of an equal share: bare refusals, exponential backoff
//  2. the same, a fixed rate
//  3. the same, Retry-After, exponential backoff, told
//  4. the same, Retry-After, AWS's adaptive mode, told
//  5. what is got of 15/s where 25 % of the backends are dead, told
//  6. what is got of 100/s where 5 % are dead, told
//  7. what is got of 40/s and 8/s in turn, a minute each
//  8. ten programs at a bucket of 100/s with Retry-After: refused %, and Jain's index
//  9. in the first table thirty programs at the same
//  10. ten programs at a bucket of 100/s that answers 503
//
// The first table, medians of three seeds, is of the law before dips left the refused share out: its rows from span on
// have changed most. Column 4 is .3 or 1.2 by chance. Twice of rarer is .9 here, of fade .99, and of unproven .8.
//
//	unchanged         1.7 .73 1.9 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	step        half  1.6 .75 .84 .53, .73 .93, .91, .65 .90, 4.4 .90, 1.2 .95
//	step        twice 1.4 .07 1.7 .30, .73 .93, .90, .94 .92, 3.3 .93, 7.4 .89
//	shortest    half  1.6 .97 1.3 1.2, .73 .92, .93, .86 .91, 4.1 .92, 1.9 .97
//	shortest    twice 1.5 .52 1.7 .41, .73 .93, .90, .79 .92, 4.1 .94, .92 .94
//	unproven    half  1.5 .54 .23 .32, .73 .93, .92, .70 .93, 2.2 .93, 1.1 .94
//	unproven    twice 1.6 .73 1.8 .40, .73 .93, .92, .88 .91, 4.1 .95, 10.9 .92
//	hidden      half  1.7 .73 2.0 .40, .73 .93, .92, .95 .95, 3.4 .90, 1.2 .95
//	hidden      twice 1.7 .73 1.6 .50, .73 .93, .92, .77 .87, 3.1 .90, 1.2 .95
//	hiddenBare  half  1.4 .91 1.9 1.2, .73 .93, .92, .86 .91, 4.2 .92, 2.2 .94
//	hiddenBare  twice 1.6 .46 1.9 1.2, .73 .93, .91, .86 .91, 4.2 .92, 1.1 .92
//	inRow       half  1.6 .35 1.9 1.2, .73 .93, .93, .86 .91, 4.2 .92, 1.2 .95
//	inRow       twice 1.4 .29 1.9 1.0, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	proof       half  1.6 .66 1.3 1.0, .73 .93, .92, .68 .91, 3.4 .89, 1.2 .95
//	proof       twice 1.7 .73 1.3 .37, .73 .93, .93, .77 .86, 3.7 .89, 1.3 .90
//	refill      half  1.7 .73 1.3 .43, .73 .93, .92, .72 .88, 3.5 .90, 1.2 .95
//	refill      twice 1.7 .73 1.2 .33, .73 .93, .92, .72 .82, 3.5 .92, 1.2 .95
//	guesses     half  1.7 .73 2.0 1.2, .73 .93, .92, .79 .91, 4.2 .85, 1.2 .95
//	guesses     twice 1.7 .73 1.9 1.2, .73 .93, .92, .86 .91, 4.5 .87, 1.4 .96
//	halving     half  1.5 .22 2.1 .76, .73 .93, .92, .78 .91, 3.8 .89, 1.2 .96
//	halving     twice 1.5 .73 1.1 1.2, .73 .93, .92, .86 .91, 4.1 .91, 1.3 .96
//	doubling    half  1.6 .70 1.9 1.2, .73 .93, .91, .70 .92, 3.1 .89, 1.2 .96
//	doubling    twice 1.5 .62 1.9 1.2, .73 .93, .92, .71 .93, 4.0 .92, 1.2 .96
//	overdue     half  1.5 .73 1.9 .96, .73 .93, .91, .80 .91, 4.4 .91, 7.9 .94
//	overdue     twice 1.6 .73 1.9 .31, .73 .93, .91, .76 .92, 4.2 .90, 1.2 .96
//	brief       half  1.7 .73 1.9 .48, .73 .93, .92, .80 .89, 4.1 .95, 1.2 .95
//	brief       twice 1.7 .73 1.9 1.2, .73 .93, .91, .67 .91, 3.7 .89, 1.2 .95
//	lasting     half  1.7 .47 1.7 1.3, .73 .93, .92, 1.1 .93, 4.4 .91, 1.2 .94
//	lasting     twice 1.7 .73 1.9 .32, .73 .93, .91, .79 .92, 2.9 .93, 1.2 .95
//	confirmed   half  1.7 .85 1.9 1.2, .73 .93, .91, .85 .91, 4.0 .86, 1.2 .95
//	confirmed   twice 1.7 .73 1.9 1.2, .73 .93, .91, .94 .93, 4.2 .92, 1.3 .94
//	far         half  1.7 .36 1.9 1.2, .73 .93, .71, .86 .91, 3.9 .92, 1.2 .95
//	far         twice 1.7 .81 1.9 1.2, .73 .93, .92, .86 .91, 4.5 .91, 1.2 .95
//	soonest     half  1.7 .73 1.9 1.2, .73 .93, .93, .79 .92, 4.3 .92, 1.2 .95
//	soonest     twice 1.7 .73 1.9 .39, .73 .93, .92, .86 .92, 3.8 .91, 1.2 .95
//	mostWait    half  1.6 .56 1.9 1.0, .73 .93, .88, .86 .92, 4.7 .88, 1.2 .95
//	mostWait    twice 1.7 .56 1.9 1.2, .73 .93, .87, .86 .91, 4.0 .91, 1.2 .95
//	climb       half  1.5 .70 1.9 1.2, .73 .93, .92, .89 .93, 4.7 .86, 1.2 .95
//	climb       twice 1.7 .57 1.9 .32, .73 .93, .91, .82 .90, 4.1 .92, 1.2 .95
//	steepest    half  1.5 .77 1.9 .24, .73 .93, .91, .78 .93, 3.9 .92, 1.2 .95
//	steepest    twice 1.5 .88 1.7 .37, .73 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	fade        half  1.6 .46 1.9 .47, .73 .93, .40, .83 .91, 3.9 .90, 1.2 .95
//	fade        twice 1.6 .62 1.9 .38, .73 .93, .93, .94 .92, 4.2 .88, 1.2 .95
//	few         half  1.5 .86 2.1 .39, .73 .93, .92, .73 .93, 3.7 .92, 1.2 .95
//	few         twice 1.6 .58 .85 .61, .73 .93, .92, .74 .91, 3.7 .90, 1.3 .96
//	span        half  1.4 .47 1.6 1.5, .73 .92, .92, .86 .91, 4.2 .91, 1.2 .95
//	span        twice .16 .14 .49 .90, .72 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	rarer       half  1.7 .73 .34 .33, .72 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	rarer       twice 1.7 .73 1.9 1.2, .73 .93, .92, .86 .91, 4.8 .86, 1.2 .95
//	more        half  1.7 .73 1.9 .31, .73 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	more        twice 1.7 .73 1.9 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	crowded     half  1.7 .73 1.9 .33, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	crowded     twice 1.7 .73 1.9 .31, .73 .93, .92, .86 .91, 4.2 .91, 1.2 .95
//	telling     half  1.5 .73 1.3 .54, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	telling     twice 1.5 .53 1.7 .81, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	certain     half  1.7 .73 1.9 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	certain     twice 1.7 .73 1.9 .31, .73 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	fewer       half  1.5 .73 1.6 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	fewer       twice 1.2 .54 1.7 1.1, .73 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	small       half  1.7 .73 1.9 1.1, .73 .93, .92, .86 .91, 5.9 .85, 1.2 .95
//	small       twice 1.7 .73 1.9 .18, .73 .93, .92, .86 .91, 3.9 .92, 1.2 .95
//	large       half  1.7 .73 1.9 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	large       twice 1.7 .73 1.3 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	dipEach     half  1.4 .38 1.4 1.3, .71 .91, .92, .86 .91, 4.2 .92, 1.2 .95
//	dipEach     twice 1.5 .27 1.0 1.2, .74 .94, .92, .86 .91, 4.2 .92, 1.2 .95
//	mostBudget  half  1.3 .42 1.0 1.0, .67 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	mostBudget  twice 1.7 .84 1.8 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//	tolerance   half  1.1 .36 1.2 1.2, .53 .86, .92, .86 .91, 4.2 .92, 1.2 .95
//	tolerance   twice 1.7 .70 1.9 1.2, .73 .93, .92, .86 .91, 4.2 .92, 1.2 .95
//
// The second table, medians of five seeds, is of the law as it is, and without column 9:
//
//	unchanged         1.3 .95 1.6 .87, .73 .93, .93, .43 .89, .87 .96
//	many        half  1.3 .59 1.6 .76, .73 .92, .93, .43 .89, .87 .96
//	many        twice .60 .41 1.5 1.2, .73 .93, .93, .43 .89, .87 .96
//	manyRare    half  1.3 .97 1.6 .87, .73 .93, .93, .43 .89, .87 .96
//	manyRare    twice 1.3 .98 1.5 .87, .73 .93, .93, .43 .89, .87 .96
//	overRare    1.1   1.3 .92 1.5 .87, .73 .93, .93, .43 .89, .87 .96
//	overRare    twice .60 .57 1.6 .48, .73 .93, .93, .43 .89, .87 .96
//	besides     half  .60 .33 1.5 .85, .73 .93, .93, .43 .89, .87 .96
//	besides     twice .63 .95 1.6 .87, .73 .93, .93, .43 .89, .87 .96
//	leastDip    half  .62 .94 1.6 .45, .73 .93, .93, .43 .89, .87 .96
//	leastDip    twice 1.0 .76 1.8 .87, .73 .93, .93, .43 .89, .87 .96
//	further     half  1.3 .49 1.6 1.2, .73 .93, .93, .43 .89, .87 .96
//	further     twice 1.3 .62 1.5 .87, .73 .93, .93, .43 .89, .87 .96
//	doubt       1, 1  1.2 .88 1.6 1.2, .73 .93, .93, .43 .89, .87 .96
//	doubt       twice 1.3 .93 1.8 .45, .73 .93, .93, .43 .89, .87 .96
//
// The constants of [Told] and [Block] have no part in these. [Block] ends a block of 60 s after 5 min.
package adapt
