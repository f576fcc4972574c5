package main

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// drawBars draws what is used in each load, and below it by how much that exceeds what is allowed.
func drawBars(w io.Writer, results []result) error {
	used := picture.Plot("", "", "permits used, per second")
	exceeds := picture.Plot("", "", "beyond rate and store, at worst")
	var names, short []string
	for _, r := range results {
		short = append(short, "saved up: "+r.savedUp())
		names = append(names, fmt.Sprintf("saved up: %s\n%d callers\nreserve %d\nuse %s\n%s",
			r.savedUp(), r.callers, r.reserves, r.settlesAt(), r.after()))
	}
	var keys []picture.Key
	for i, s := range []struct {
		name   string
		colour color.Color
		of     func(result) outcome
	}{
		{"pace", picture.Blue, func(r result) outcome { return r.pace }},
		{"possible within rate and store", picture.Grey, func(r result) outcome { return r.possible }},
		{"x/time/rate, given ReserveN(now, -n)", picture.Orange, func(r result) outcome { return r.xtime }},
	} {
		var above, below plotter.Values
		for _, r := range results {
			above = append(above, s.of(r).used)
			below = append(below, r.exceeds(s.of(r)))
		}
		for _, p := range []struct {
			*plot.Plot
			plotter.Values
		}{{used, above}, {exceeds, below}} {
			bars, err := plotter.NewBarChart(p.Values, barWidth)
			if err != nil {
				return err
			}
			bars.Color, bars.LineStyle, bars.Offset = s.colour, draw.LineStyle{}, barWidth*vg.Length(i-1)
			p.Add(bars)
			if p.Plot == used {
				keys = append(keys, picture.Key{Name: s.name, Thumb: bars})
			}
		}
	}
	exceeds.NominalX(names...)
	used.NominalX(short...) // the rest stands below the other
	for _, p := range []*plot.Plot{used, exceeds} {
		p.X.Tick.Label.Font = picture.Sans(9)
		p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(names))-0.5, 0
	}
	used.Y.Max = 1.05 * permitsPerSecond
	exceeds.Y.Max = max(1, exceeds.Y.Max)
	return picture.WritePNG(w, picture.Width, 16*vg.Centimeter,
		fmt.Sprintf("Callers reserve more than they use, and settle later: what is used of %d permits a second",
			permitsPerSecond),
		[][]picture.Key{keys}, [][]*plot.Plot{{used}, {exceeds}})
}

const barWidth = vg.Length(23)
