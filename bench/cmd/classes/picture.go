package main

import (
	"image/color"
	"io"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

var colours = []color.Color{picture.Red, picture.Blue, picture.Green}

// drawWaits draws how long each call of people waited, by when it came.
func drawWaits(w io.Writer, results []result) error {
	p := picture.Plot("", "when the call came, s", "how long it waited")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.ConstantTicks([]plot.Tick{
		{Value: 1e-4, Label: "0.1 ms"}, {Value: 1e-3, Label: "1 ms"}, {Value: 1e-2, Label: "10 ms"}, {Value: 0.1, Label: "0.1 s"},
		{Value: 1, Label: "1 s"}, {Value: 10, Label: "10 s"},
	})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, (people * every).Seconds(), 1e-4, 10
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = picture.Pale, picture.Pale
	p.Add(grid)
	var keys []picture.Key
	for i, r := range results {
		var points plotter.XYs
		for _, c := range r.calls {
			points = append(points, plotter.XY{X: c.came.Seconds(), Y: math.Max(c.waited.Seconds(), float64(100*time.Microsecond)/1e9)})
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: colours[i], Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
		p.Add(s)
		keys = append(keys, picture.Key{Name: r.name, Thumb: s})
	}
	return picture.WritePNG(w, picture.Width, 11*vg.Centimeter, "100 calls of people among 2,000 of a batch, at 1,000 permits a second",
		[][]picture.Key{keys}, [][]*plot.Plot{{p}})
}
