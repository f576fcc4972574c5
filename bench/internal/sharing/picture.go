package sharing

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// step is the time that a bar stands for.
const step = 400 * time.Millisecond

var colours = []color.Color{picture.Blue, picture.Green, picture.Grey, picture.Red, picture.Sky}

// draw draws the calls of all processes over time, one upon the other, the killed process on top. Time begins with
// the first call, since processes take a while to start.
func draw(w io.Writer, e Experiment, begin time.Time, calls []call) error {
	p := picture.Plot("", "seconds", "calls allowed, a second")
	first := slices.MinFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) }).at
	killed := begin.Add(e.killed()).Sub(time.Unix(0, first))
	e.Lasts = (begin.Add(e.Lasts).Sub(time.Unix(0, first))).Truncate(step)
	p.X.Min, p.X.Max = 0, e.Lasts.Seconds()
	p.Y.Min, p.Y.Max = 0, 1.2*e.Rate
	p.X.Tick.Marker = picture.Every(max(1, int(e.Lasts.Seconds()/10)))
	heights := stack(e, first, calls)
	for i := e.Processes - 1; i >= 0; i-- { // each stands in front of the one with one process more
		p.Add(picture.Histogram(heights[i], step, colour(e, i)))
	}
	p.Add(picture.Limit(e.Rate, e.Lasts))
	var labels plotter.XYLabels
	say := func(x, y float64, text string) {
		labels.XYs, labels.Labels = append(labels.XYs, plotter.XY{X: x, Y: y}), append(labels.Labels, text)
	}
	say(0.02*e.Lasts.Seconds(), 1.04*e.Rate, fmt.Sprintf("the limit: %g calls a second", e.Rate))
	for i := range e.Processes {
		say(0.06*e.Lasts.Seconds(), (float64(i)+0.45)/float64(e.Processes)*e.Rate, fmt.Sprintf("process %d", i+1))
	}
	if e.Kill {
		at := killed.Seconds()
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: at, Y: 0}, {X: at, Y: 1.1 * e.Rate}},
			LineStyle: vgdraw.LineStyle{Color: color.Black, Width: vg.Points(1.5)}})
		say(at+0.01*e.Lasts.Seconds(), 1.04*e.Rate,
			fmt.Sprintf("process %d is killed: the others get its share", e.Processes))
		for i := range e.Processes - 1 {
			say(at+0.06*e.Lasts.Seconds(), (float64(i)+0.45)/float64(e.Processes-1)*e.Rate, fmt.Sprintf("process %d", i+1))
		}
	}
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range text.TextStyle {
		text.TextStyle[i].Font = picture.Sans(12)
		if name := labels.Labels[i]; len(name) < 12 { // on a colour
			text.TextStyle[i].Color = color.White
		}
	}
	p.Add(text)
	return picture.WritePNG(w, picture.Width, 10*vg.Centimeter,
		fmt.Sprintf("%d processes share one limit through a file: no server", e.Processes), nil, [][]*plot.Plot{{p}})
}

// stack returns for each process, and each step of time, the calls a second of it and of those before it.
func stack(e Experiment, first int64, calls []call) [][]float64 {
	heights := make([][]float64, e.Processes)
	for i := range heights {
		heights[i] = make([]float64, int(e.Lasts/step))
	}
	half := time.Duration(float64(time.Second) / e.Rate / 2) // calls lie on a grid: a bin must not end where a call lies
	for _, c := range calls {
		bin := (time.Duration(c.at-first) + half) / step
		if int(bin) >= len(heights[0]) {
			continue
		}
		for i := c.process; i < e.Processes; i++ {
			heights[i][bin] += 1 / step.Seconds()
		}
	}
	return heights
}

func colour(e Experiment, process int) color.Color {
	if e.Kill && process == e.Processes-1 {
		return picture.Orange
	}
	return colours[process%len(colours)]
}
