package main

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/nextfree/pace/bench/internal/picture"
)

// drawReached draws how much of the rate one goroutine gets, for the limiters that save nothing up: a store hides
// wake-ups that are late.
func drawReached(w io.Writer, results map[setting][]result) error {
	p := picture.Plot("", "", "% of the rate")
	p.Y.Min, p.Y.Max = 0, 118
	p.Y.Tick.Marker = picture.Every(50)
	p.Add(picture.Grid())
	var names []string
	for _, perSecond := range rates {
		names = append(names, fmt.Sprintf("%d/s wanted", perSecond))
	}
	series := []struct {
		limiter int
		colour  color.Color
	}{{paceStrict, picture.Blue}, {xtimeStrict, picture.Orange}, {uberDefault, picture.Grey}}
	var keys []picture.Key
	for i, s := range series {
		var values []float64
		for _, perSecond := range rates {
			values = append(values, 100+results[setting{perSecond, 1}][s.limiter].offBy())
		}
		percent := func(v float64) string { return fmt.Sprintf("%.0f %%", v) }
		bars, err := picture.Bars{
			Values: values, Text: percent, Size: 11, Colour: s.colour, Width: 60, I: i, N: len(series),
		}.Add(p)
		if err != nil {
			return err
		}
		keys = append(keys, picture.Key{Name: limiters[s.limiter].name, Thumb: bars})
	}
	picture.NameBars(p, names, 12)
	return picture.WritePNG(w, picture.Width, 9.5*vg.Centimeter,
		"How many calls one goroutine makes that waits for each, of those that the rate allows",
		[][]picture.Key{keys}, [][]*plot.Plot{{p}})
}
