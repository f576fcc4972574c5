package main

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

var colours = []color.Color{picture.Red, picture.Blue, picture.Green}

// least is the shortest wait that is drawn, in seconds.
const least = 1e-4

// drawWaits draws how long each call of people waited, by when it came.
func drawWaits(w io.Writer, results []result) error {
	p := picture.Plot("", "when the call came, s", "how long it waited")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.ConstantTicks([]plot.Tick{
		{Value: 1e-4, Label: "< 0.1 ms"}, {Value: 1e-3, Label: "1 ms"}, {Value: 1e-2, Label: "10 ms"},
		{Value: 0.1, Label: "0.1 s"}, {Value: 1, Label: "1 s"}, {Value: 10, Label: "10 s"},
	})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, (people * every).Seconds(), least, 10
	p.Add(picture.Grid())
	var keys []picture.Key
	for i, r := range results {
		var points plotter.XYs
		for _, c := range r.calls {
			points = append(points, plotter.XY{X: c.came.Seconds(), Y: max(c.waited.Seconds(), least)})
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: colours[i], Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
		p.Add(s)
		keys = append(keys, picture.Key{Name: r.name, Thumb: s})
	}
	return picture.WritePNG(w, picture.Width, 11*vg.Centimeter,
		"100 calls of people among 2,000 of a batch, of 1 to 3 permits each, at 1,000 permits a second",
		[][]picture.Key{keys}, [][]*plot.Plot{{p}})
}
