package main

import (
	"fmt"
	"image/color"
	"io"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/nextfree/pace/bench/internal/picture"
)

// drawBars draws the waits, by the contender's name, a plot for each of the queues.
func drawBars(w io.Writer, waits map[string][]time.Duration) error {
	colours := []color.Color{picture.Blue, picture.Sky, picture.Orange, picture.Grey}
	plots := make([]*plot.Plot, len(queues))
	var names []string
	for _, o := range orders {
		names = append(names, strings.Replace(o.name, ", ", ",\n", 1))
	}
	var keys []picture.Key
	for q, n := range queues {
		p := picture.Plot(fmt.Sprintf("%d callers", n), "", "next caller's wait, s")
		plots[q] = p
		for i, c := range contenders {
			of := waits[c.name][q*len(orders):][:len(orders)]
			var values []float64
			for _, wait := range of {
				values = append(values, wait.Seconds())
			}
			bars, err := picture.Bars{Values: values, Text: short, Size: 8, Colour: colours[i], Width: 15,
				I: i, N: len(contenders)}.Add(p)
			if err != nil {
				return err
			}
			if q == 0 {
				keys = append(keys, picture.Key{Name: c.name, Thumb: bars})
			}
		}
		picture.NameBars(p, names, 9)
		p.Y.Max *= 1.08
	}
	return picture.WritePNG(w, picture.Width, 10*vg.Centimeter,
		fmt.Sprintf("Callers queue at %d/s, and all give up: how long the next one waits for its permit", permitsPerSecond),
		[][]picture.Key{keys}, [][]*plot.Plot{plots})
}

// short returns seconds as a text for which there is room above a bar.
func short(seconds float64) string {
	if seconds < 9.95 {
		return fmt.Sprintf("%.1f", seconds)
	}
	return fmt.Sprintf("%.0f", seconds)
}
