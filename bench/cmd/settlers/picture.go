package main

import (
	"fmt"
	"image/color"
	"io"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/nextfree/pace/bench/internal/picture"
)

// drawBars draws by how many permits each limiter went over its limit. It draws the loads whose use can't be known
// beforehand and whose store is small.
func drawBars(w io.Writer, results []result) error {
	p := picture.Plot("", "", "permits over the limit, at worst")
	var names []string
	var drawn []result
	for _, r := range results {
		if r.actual.from < r.actual.to && r.saved <= largeStore {
			drawn = append(drawn, r)
			names = append(names, fmt.Sprintf("%d callers reserve %d,\nsettle at %s %s",
				r.callers, r.reserves, r.settlesAt(), r.after()))
		}
	}
	var keys []picture.Key
	for i, s := range []struct {
		name   string
		colour color.Color
		of     func(result) outcome
	}{
		{"pace: r.Settle(used)", picture.Blue, func(r result) outcome { return r.pace }},
		{"x/time/rate: l.ReserveN(now, used-reserved)", picture.Orange, func(r result) outcome { return r.xtime }},
	} {
		var values []float64
		for _, r := range drawn {
			values = append(values, r.exceeds(s.of(r)))
		}
		bars, err := picture.Bars{Values: values, Text: whole, Size: 11, Colour: s.colour, Width: 80, I: i, N: 2}.Add(p)
		if err != nil {
			return err
		}
		keys = append(keys, picture.Key{Name: s.name, Thumb: bars})
	}
	picture.NameBars(p, names, 10)
	p.Y.Max = max(1, p.Y.Max*1.1)
	return picture.WritePNG(w, picture.Width, 9.5*vg.Centimeter,
		fmt.Sprintf("Permits over a limit of %d a second, where callers reserve more than they use and settle later.\n"+
			"Not to go over, pace uses less where they settle late: %s",
			permitsPerSecond, paceUses(drawn)),
		[][]picture.Key{keys}, [][]*plot.Plot{{p}})
}

// largeStore is one second: with a minute stored, no load goes over the limit.
const largeStore = time.Second

// paceUses says how much of the limit pace uses in each load.
func paceUses(drawn []result) string {
	var all []string
	for _, r := range drawn {
		all = append(all, fmt.Sprintf("%.0f", r.pace.used))
	}
	return strings.Join(all, ", ") + " permits a second"
}
