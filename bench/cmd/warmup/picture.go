package main

import (
	"fmt"
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

// count counts the calls of every step. A call that goes at the same moment as the call before it belongs to a burst,
// and counts there: bursts are by their times.
func count(at []time.Duration) (counts []float64, bursts map[time.Duration]int) {
	counts, bursts = make([]float64, length()/step), map[time.Duration]int{}
	for i, t := range at {
		counts[t/step]++
		if i > 0 && t == at[i-1] {
			counts[t/step]--
			bursts[t]++
		}
	}
	return counts, bursts
}

// drawCalls draws the calls of each limiter over time, one below the other, in the same scales: the rate, and each
// burst as a line with its number of calls.
func drawCalls(w io.Writer, calls [][]time.Duration) error {
	const tallest = 1.7 * permitsPerSecond
	var plots [][]*plot.Plot
	var bars *plotter.Histogram
	for i, at := range calls {
		counts, bursts := count(at)
		p := picture.Plot(contenders[i].name, "seconds", "calls/s")
		p.X.Min, p.X.Max = 0, length().Seconds()
		p.Y.Min, p.Y.Max = 0, tallest
		p.X.Tick.Marker, p.Y.Tick.Marker = picture.Every(5), picture.Every(50)
		for j := range counts {
			counts[j] /= step.Seconds()
		}
		bars = picture.Histogram(counts, step, picture.Blue)
		p.Add(idle(tallest), bars, picture.Limit(permitsPerSecond, length()))
		for t, n := range bursts {
			top := plotter.XY{X: t.Seconds(), Y: 1.45 * permitsPerSecond}
			text := fmt.Sprintf("%d calls at once", n+1)
			label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{top}, Labels: []string{text}})
			if err != nil {
				return err
			}
			label.TextStyle[0].Font = picture.Sans(10)
			label.Offset = vg.Point{X: vg.Points(4), Y: -vg.Points(4)}
			p.Add(&plotter.Line{XYs: plotter.XYs{{X: t.Seconds(), Y: 0}, top}, LineStyle: burstLine}, label)
		}
		plots = append(plots, []*plot.Plot{p})
	}
	keys := []picture.Key{
		{Name: "calls that go, a second", Thumb: bars},
		{Name: "a burst", Thumb: &plotter.Line{LineStyle: burstLine}},
		{Name: "nobody asks", Thumb: &plotter.Polygon{Color: picture.Pale}},
		{Name: fmt.Sprintf("the rate: %d calls/s", permitsPerSecond), Thumb: picture.Limit(0, 0)},
	}
	return picture.WritePNG(w, picture.Width, 13*vg.Centimeter,
		"After an idle time: a bursty limiter lets a hundred calls go at once, a warming-up one begins slowly",
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

var burstLine = draw.LineStyle{Color: picture.Red, Width: vg.Points(2.5)}
