package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A row is what the callers of one way of failing saw of a fault.
type row struct {
	fault, mode string
	beyond      time.Duration // of the longest call, beyond the timeout
	over        int           // permits over the envelope
	may         int           // permits over it that the documentation announces
	back        time.Duration // after the fault's end Redis decides again, at the rate
	failed      int           // calls that returned an error of Redis's
	calls       int           // all of them
	timeout     time.Duration
	stall       time.Duration // by how much a timer of this machine was late at most
	hung        int
	odd         []error
	goroutines  int
}

const (
	mostBack = time.Second
	wide     = 5 // times as much is a miss on a busy machine too
)

var heading = []string{"fault", "when Redis fails", ">longest call beyond the timeout", ">permits over the envelope",
	">back after", ">calls, of them refused with an error", ">a timer late by", ">hung", ">goroutines left", "holds"}

func (r row) cells() []string {
	verdict := "yes"
	if misses := r.misses(1); misses != "" {
		verdict = "**no: " + misses + "**"
	}
	over := fmt.Sprint(r.over)
	if r.may > 0 {
		over += fmt.Sprintf(" (at most %d)", r.may)
	}
	return []string{r.fault, r.mode, fmt.Sprintf("%.1f ms", float64(max(0, r.beyond))/1e6), over,
		fmt.Sprintf("%.0f ms", float64(r.back)/1e6), fmt.Sprintf("%d, %d", r.calls, r.failed),
		fmt.Sprintf("%.0f ms", float64(r.stall)/1e6), fmt.Sprint(r.hung),
		fmt.Sprint(r.goroutines), verdict}
}

// misses says what a row misses by more than a factor. Counts need no margin.
func (r row) misses(factor int) string {
	var all []string
	note := func(missed bool, what string) {
		if missed {
			all = append(all, what)
		}
	}
	note(r.beyond > r.timeout*time.Duration(factor)+r.stall, "a call took too long")
	note(r.over > r.may, "too many permits")
	note(r.back > mostBack*time.Duration(factor), "back too late")
	note(r.hung > 0, "callers hang")
	note(r.goroutines > 0, "goroutines are left")
	if len(r.odd) > 0 {
		note(true, fmt.Sprintf("%d odd errors: %v", len(r.odd), r.odd[0]))
	}
	return strings.Join(all, ", ")
}

// judge makes a row of the calls.
func (g *group) judge(f fault, begun, ended time.Time) row {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := row{fault: f.name, mode: g.name, calls: len(g.calls), hung: g.hung, odd: g.odd, timeout: g.timeout}
	for _, c := range g.calls {
		r.beyond = max(r.beyond, c.beyond)
		if c.failed {
			r.failed++
		}
	}
	back := g.back(ended)
	r.back = back.Sub(ended)
	counted := g.calls
	if g.name == "FailOpen" { // it grants all that is asked for during an outage
		counted = slices.DeleteFunc(slices.Clone(counted), func(c call) bool {
			return c.end.After(begun) && c.begin.Before(back)
		})
	}
	r.over = g.over(counted)
	if f.loses { // the server begins with a full store, and does not know what it promised to requests that wait
		r.may += int(g.store) + processes*len(waiting) + 1
	}
	if g.name != "FailClosed" { // processes find Redis again one after another
		r.may += int(g.store)
	}
	return r
}

// back returns when, after the fault's end, no call failed any more, and permits came at nine
// tenths of the rate.
func (g *group) back(ended time.Time) time.Time {
	const stretch = 300 * time.Millisecond
	at, last := ended, ended
	for _, c := range g.calls {
		if c.failed && c.end.After(at) {
			at = c.end
		}
		if c.end.After(last) {
			last = c.end
		}
	}
	for ; at.Add(stretch).Before(last); at = at.Add(10 * time.Millisecond) {
		granted := 0
		for _, c := range g.calls {
			if c.granted && c.end.After(at) && c.end.Before(at.Add(stretch)) {
				granted++
			}
		}
		if float64(granted) >= 0.9*g.rate*stretch.Seconds() {
			return at
		}
	}
	return ended.Add(time.Hour) // not while anybody looked
}

// over returns by how much calls were granted more than the envelope: in any stretch of t seconds a
// store and rate*t permits, and the last one's own. A grant counts in a stretch if all of the time
// in which it can have been made does.
func (l limits) over(calls []call) int {
	var granted []call
	for _, c := range calls {
		if c.granted {
			granted = append(granted, c)
		}
	}
	slices.SortFunc(granted, func(a, b call) int { return a.end.Compare(b.end) })
	worst := 0.0
	for _, first := range granted {
		n := -1.0
		for _, c := range granted {
			if c.from.Before(first.from) {
				continue
			}
			n++
			worst = max(worst, n-l.store-l.rate*c.end.Sub(first.from).Seconds())
		}
	}
	return int(worst)
}
