package main

import (
	"fmt"
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// The horizontal axis, in microseconds. Smaller errors are drawn at its begin.
const least, most = 0.1, 3000

// lines says how each of the limiters is drawn.
var lines = []draw.LineStyle{
	line(picture.Blue),
	line(picture.Sky),
	line(picture.Red),
	line(picture.Orange),
	line(picture.Grey, vg.Points(5), vg.Points(3)),
}

func line(c color.Color, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: vg.Points(1.8), Dashes: dashes}
}

// drawCurves draws a cumulative curve of the spacing errors for each limiter, a plot for each setting.
func drawCurves(w io.Writer, results map[setting][]result) error {
	plots := make([][]*plot.Plot, len(goroutines))
	for i, n := range goroutines {
		for _, perSecond := range rates {
			s := setting{perSecond, n}
			p, err := curves(s, results[s])
			if err != nil {
				return err
			}
			plots[i] = append(plots[i], p)
		}
	}
	return picture.WritePNG(w, picture.Width, 15*vg.Centimeter,
		"How evenly calls are released: by how much the time between two of them is off", keys(), plots)
}

func keys() [][]picture.Key {
	var keys []picture.Key
	for i, l := range limiters {
		keys = append(keys, picture.Key{Name: l.name, Thumb: &plotter.Line{LineStyle: lines[i]}})
	}
	interval := picture.Key{Name: "as much as one interval (1/rate)", Thumb: &plotter.Line{LineStyle: intervalLine}}
	return [][]picture.Key{
		{keys[paceStrict], keys[xtimeStrict], keys[uberDefault]}, {keys[paceBursty], keys[xtimeBursty], interval},
	}
}

var intervalLine = draw.LineStyle{
	Color: color.Black, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(2), vg.Points(2)},
}

func curves(s setting, results []result) (*plot.Plot, error) {
	who := "1 goroutine"
	if s.goroutines > 1 {
		who = fmt.Sprintf("%d goroutines", s.goroutines)
	}
	p := picture.Plot(fmt.Sprintf("%d/s, %s", s.perSecond, who), "off by at most, µs", "% of calls")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = least, most, 0, 100
	p.Y.Tick.Marker = picture.Every(50)
	p.Add(picture.Grid())

	x := microseconds(results[0].interval)
	p.Add(&plotter.Line{XYs: plotter.XYs{{X: x, Y: 0}, {X: x, Y: 100}}, LineStyle: intervalLine})
	for _, i := range []int{xtimeStrict, xtimeBursty, uberDefault, paceBursty, paceStrict} { // the last is on top
		p.Add(&plotter.Line{XYs: results[i].cumulative(), LineStyle: lines[i]})
	}
	return p, nil
}

// cumulative returns points of a curve: for a spacing error in microseconds, the percentage of errors that are no
// larger.
func (r result) cumulative() (xys plotter.XYs) {
	const points = 400
	for i := range points + 1 {
		at := max(least, min(most, r.quantile(float64(i)/points)))
		xys = append(xys, plotter.XY{X: at, Y: 100 * float64(i) / points})
	}
	return xys
}

// decades labels the powers of ten as numbers.
type decades struct{}

func (decades) Ticks(from, to float64) (ticks []plot.Tick) {
	for decade := least; decade <= to; decade *= 10 {
		ticks = append(ticks, plot.Tick{Value: decade, Label: strconv.FormatFloat(decade, 'g', 4, 64)})
		for minor := 2.; minor < 10 && minor*decade <= to; minor++ {
			ticks = append(ticks, plot.Tick{Value: minor * decade})
		}
	}
	return ticks
}
