package main

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// step is the time that a bar of the picture stands for.
const step = 500 * time.Millisecond

// count counts the calls of every step.
func count(at []time.Duration) []float64 {
	counts := make([]float64, length()/step)
	for _, t := range at {
		counts[t/step]++
	}
	return counts
}

// drawCalls draws the calls of each limiter over time, one below the other, in the same scales.
func drawCalls(w io.Writer, counts [][]float64) error {
	tallest := 0.
	for _, of := range counts {
		for _, n := range of {
			tallest = max(tallest, n/step.Seconds())
		}
	}
	var plots [][]*plot.Plot
	var bars *plotter.Histogram
	for i, of := range counts {
		p := picture.Plot(contenders[i].name, "seconds", "calls/s")
		p.X.Min, p.X.Max = 0, length().Seconds()
		p.Y.Min, p.Y.Max = 0, tallest*1.05
		p.X.Tick.Marker, p.Y.Tick.Marker = picture.Every(5), picture.Every(100)
		bars = &plotter.Histogram{FillColor: picture.Blue, Width: step.Seconds()}
		for j, n := range of {
			from := float64(j) * step.Seconds()
			bars.Bins = append(bars.Bins, plotter.HistogramBin{Min: from, Max: from + step.Seconds(), Weight: n / step.Seconds()})
		}
		p.Add(idle(tallest*1.05), bars,
			&plotter.Line{XYs: plotter.XYs{{X: 0, Y: permitsPerSecond}, {X: length().Seconds(), Y: permitsPerSecond}}, LineStyle: rateLine})
		plots = append(plots, []*plot.Plot{p})
	}
	keys := []picture.Key{
		{Name: "calls that go", Thumb: bars},
		{Name: "nobody asks", Thumb: &plotter.Polygon{Color: picture.Pale}},
		{Name: fmt.Sprintf("the rate: %d calls/s", permitsPerSecond), Thumb: &plotter.Line{LineStyle: rateLine}},
	}
	return picture.WritePNG(w, picture.Width, 13*vg.Centimeter,
		"A caller that takes all it gets, before and after idle times",
		[][]picture.Key{keys}, plots)
}

// idle draws the times in which nobody asks.
func idle(height float64) *plotter.Polygon {
	p := &plotter.Polygon{Color: picture.Pale}
	at := time.Duration(0)
	for _, phase := range phases {
		from, to := (at + phase.load).Seconds(), (at + phase.load + phase.idle).Seconds()
		p.XYs = append(p.XYs, plotter.XYs{{X: from, Y: 0}, {X: from, Y: height}, {X: to, Y: height}, {X: to, Y: 0}})
		at += phase.load + phase.idle
	}
	return p
}

var rateLine = draw.LineStyle{Color: color.Black, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
