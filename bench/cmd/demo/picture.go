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

// draw draws the calls of each half over time, one part below the other, in the same scales.
func draw(w io.Writer, halves []half) error {
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
		row := h.Row()
		p := picture.Plot(fmt.Sprintf("%s: %s, %s calls sent, %s refused, longest wait %s",
			row[0], row[1], row[3], row[4], row[6]), "seconds", "calls in 100 ms")
		p.X.Min, p.X.Max = 0, end.Seconds()
		p.Y.Min, p.Y.Max = 0, tallest*1.05
		p.X.Tick.Marker, p.Y.Tick.Marker = picture.Every(1), picture.Every(20)
		// Calls that were answered stand before all calls, so that refused ones are seen above them.
		p.Add(picture.Grid(), bars[i][0], bars[i][1], picture.Limit(allowed, end))
		plots = append(plots, []*plot.Plot{p})
	}
	keys := []picture.Key{
		{Name: "answered", Thumb: bars[0][1]},
		{Name: "refused with 429", Thumb: bars[0][0]},
		{Name: fmt.Sprintf("allowed: %.0f in 100 ms, %d more at once", allowed, burst), Thumb: picture.Limit(0, 0)},
	}
	return picture.WritePNG(w, picture.Width, 18*vg.Centimeter,
		fmt.Sprintf("%d calls of %d goroutines to an API that allows %d/s with a burst of %d",
			calls, goroutines, callsPerSecond, burst),
		[][]picture.Key{keys}, plots)
}

// allowed is how many calls the API allows in a step.
const allowed = callsPerSecond * float64(step) / float64(time.Second)
