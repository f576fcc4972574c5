package sharing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A judgement is what the calls say of the limit.
type judgement struct {
	rows         [][]string
	used         float64 // of the limit, while all processes called
	over         float64 // by how many calls any stretch of time had more than the limit allows
	late         time.Duration
	median, most time.Duration // that a decision took
}

// slack is how far off a time may be, in calls: a file has the time in microseconds.
const slack = 0.02

func (j judgement) verdict() string {
	if j.over > slack {
		return fmt.Sprintf("In some stretch of time there were %.2f calls more than it allows.", j.over)
	}
	return fmt.Sprintf("No stretch of time had a call more than it allows\n"+
		"(by the times at which calls might go; the system woke their callers up to %v later).", j.late)
}

func judge(e Experiment, calls []call) judgement {
	var j judgement
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	counts := make([]int, e.Processes)
	var took []time.Duration
	for _, c := range calls {
		counts[c.process]++
		took = append(took, c.took)
		j.late = max(j.late, time.Duration(c.gone-c.at).Round(time.Millisecond))
	}
	row := func(name string, n int, lasted time.Duration) {
		j.rows = append(j.rows, []string{name, fmt.Sprint(n), fmt.Sprintf("%.1f", float64(n)/lasted.Seconds())})
	}
	for p, n := range counts {
		if e.Kill && p == e.Processes-1 {
			row(fmt.Sprintf("process %d, until it was killed", p+1), n, e.killed())
		} else {
			row(fmt.Sprintf("process %d", p+1), n, e.Lasts)
		}
	}
	row("together", len(calls), e.Lasts)
	slices.Sort(took)
	j.median, j.most = took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond)
	first, last := calls[0].at, calls[len(calls)-1].at
	j.used = float64(len(calls)-1) / (e.Rate * max(1e-9, time.Duration(last-first).Seconds()))
	j.over = over(e.Rate, calls)
	return j
}

// over returns by how many calls any stretch of time had more than rate*t and one, of calls in order.
func over(rate float64, calls []call) float64 {
	least, worst := math.Inf(1), math.Inf(-1)
	for i, c := range calls {
		ahead := float64(i) - rate*time.Duration(c.at-calls[0].at).Seconds()
		worst = max(worst, ahead-least) // of calls i and an earlier one, less one
		least = min(least, ahead)
	}
	return max(0, worst)
}
