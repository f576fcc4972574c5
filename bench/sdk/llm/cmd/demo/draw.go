package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/internal/picture"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

// step is the time that a bar of the picture stands for.
const step = 250 * time.Millisecond

// allowed is the limit, in 1000 tokens per second.
const allowed = tokens / 1000. / (float64(minute) / float64(time.Second))

var usedLine = vgdraw.LineStyle{Color: picture.Blue, Width: vg.Points(1.5)}

// draw draws each half in a row: to the left the tokens per second, to the right the calls.
func draw(w io.Writer, halves []half) error {
	var end time.Duration
	tallest := 0.
	for _, h := range halves {
		end = max(end, h.Took)
		all, _ := demo.Count(calledAt(h.seen), step)
		for _, n := range all {
			tallest = max(tallest, n)
		}
	}
	var plots [][]*plot.Plot
	var bars [2]*plotter.Histogram
	for _, h := range halves {
		p := picture.Plot(fmt.Sprintf("%s: %d of %d calls answered, in %.1f s", h.Name, h.Answered, calls, h.Took.Seconds()),
			"seconds", "1000 tokens per second")
		p.Y.Min, p.Y.Max = 0, allowed*1.2
		p.Y.Tick.Marker = picture.Every(2)
		p.Add(&plotter.Line{XYs: used(h.seen, h.Took), LineStyle: usedLine, FillColor: picture.Sky},
			picture.Limit(allowed, end))

		all, answered := demo.Count(calledAt(h.seen), step)
		bars = [2]*plotter.Histogram{
			picture.Histogram(all, step, picture.Red), picture.Histogram(answered, step, picture.Blue),
		}
		q := picture.Plot(fmt.Sprintf("%s: %d calls sent, %d refused", h.Name, len(h.seen), h.counts.Refused),
			"seconds", fmt.Sprintf("calls in %v", step))
		q.Y.Min, q.Y.Max = 0, tallest*1.05
		q.Y.Tick.Marker = picture.Every(20)
		q.Add(bars[0], bars[1]) // calls that were answered stand before all calls, so that refused ones are seen above them

		for _, half := range []*plot.Plot{p, q} {
			half.X.Min, half.X.Max = 0, end.Seconds()
			half.X.Tick.Marker = picture.Every(5)
		}
		if h.Answered == calls {
			mark, err := best(allowed * 1.2)
			if err != nil {
				return err
			}
			p.Add(mark...)
		}
		plots = append(plots, []*plot.Plot{p, q})
	}
	keys := [][]picture.Key{
		{
			{Name: fmt.Sprintf("tokens used, mean of %v", minute), Thumb: &plotter.Line{LineStyle: usedLine}},
			{Name: "answered", Thumb: bars[1]},
		}, {
			{Name: fmt.Sprintf("what the server allows: %d in any %v", tokens, minute), Thumb: picture.Limit(0, 0)},
			{Name: "refused with 429", Thumb: bars[0]},
		},
	}
	return picture.WritePNG(w, picture.Width, 14*vg.Centimeter,
		headline(halves), keys, plots)
}

// best returns a line at the time that all calls would take at best, and its label.
func best(height float64) ([]plot.Plotter, error) {
	at := atBest().Seconds()
	label, err := plotter.NewLabels(plotter.XYLabels{
		XYs: plotter.XYs{{X: at, Y: 0.06 * height}}, Labels: []string{fmt.Sprintf("%.1f s at best ", at)},
	})
	if err != nil {
		return nil, err
	}
	label.TextStyle[0].Font, label.TextStyle[0].XAlign = picture.Sans(10), vgdraw.XRight
	return []plot.Plotter{
		&plotter.Line{XYs: plotter.XYs{{X: at, Y: 0}, {X: at, Y: height}},
			LineStyle: vgdraw.LineStyle{Color: picture.Red, Width: vg.Points(2)}},
		label,
	}, nil
}

// headline says how many calls each half has answered.
func headline(halves []half) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Of %d calls to a language model", calls)
	for i, h := range halves {
		fmt.Fprintf(&b, "%s %d are answered %s", [2]string{",", " and"}[min(i, 1)], h.Answered, h.Name)
	}
	return b.String()
}

// calledAt returns what the server saw as the demos have it.
func calledAt(seen []server.Record) (calls []demo.Call) {
	for _, r := range seen {
		calls = append(calls, demo.Call{At: r.At.Sub(seen[0].At), Refused: r.Refused})
	}
	return calls
}

// used returns the tokens used in the server's window before each moment, in 1000 tokens per
// second.
func used(seen []server.Record, end time.Duration) (line plotter.XYs) {
	for at := time.Duration(0); at <= end; at += step / 10 {
		tokens := 0
		for _, r := range seen {
			if since := at - r.At.Sub(seen[0].At); since >= 0 && since < minute {
				tokens += r.Used()
			}
		}
		line = append(line, plotter.XY{X: at.Seconds(), Y: float64(tokens) / 1000 / minute.Seconds()})
	}
	return line
}
