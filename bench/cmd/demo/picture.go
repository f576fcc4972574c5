package main

import (
	"fmt"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/internal/picture"
)

// step is the time that a bar of the picture stands for.
const step = 100 * time.Millisecond

// draw draws the calls of each part over time, one part below the other, in the same scales.
func draw(w io.Writer, title string, halves []half) error {
	var end time.Duration
	tallest := 0.
	bars := make([][2]*plotter.Histogram, len(halves))
	for i, h := range halves {
		all, answered := demo.Count(h.seen, step)
		for _, n := range all {
			tallest = max(tallest, n)
		}
		bars[i] = [2]*plotter.Histogram{
			picture.Histogram(all, step, picture.Red), picture.Histogram(answered, step, picture.Blue),
		}
		end = max(end, h.Took)
	}
	var plots [][]*plot.Plot
	for i, h := range halves {
		p := picture.Plot(fmt.Sprintf("%s: %d refused, the first %d answered after %.1f s, all after %.1f s",
			h.Name, h.refused(), allowed, h.first(allowed).Seconds(), h.Took.Seconds()), "", "calls in 100 ms")
		if i == len(halves)-1 {
			p.X.Label.Text = "seconds"
		}
		p.X.Min, p.X.Max = 0, end.Seconds()
		p.Y.Min, p.Y.Max = 0, tallest*1.05
		p.X.Tick.Marker, p.Y.Tick.Marker = picture.Every(1), picture.Every(max(10, int(tallest/40)*10))
		// Calls that were answered stand before all calls, so that refused ones are seen above them.
		p.Add(picture.Grid(), bars[i][0], bars[i][1])
		plots = append(plots, []*plot.Plot{p})
	}
	keys := []picture.Key{{Name: "answered", Thumb: bars[0][1]}, {Name: "refused with 429", Thumb: bars[0][0]}}
	height := vg.Length(3+4*len(halves)) * vg.Centimeter
	return picture.WritePNG(w, picture.Width, height, title, [][]picture.Key{keys}, plots)
}
