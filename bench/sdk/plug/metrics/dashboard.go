package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/nextfree/pace/bench/internal/picture"
)

// A panel of the dashboard, and what there is to see in it.
type panel struct {
	title   string
	seconds bool // it shows times
	queries []query
	curves  []curve
}

type query struct{ expr, legend string }

// readDashboard reads a dashboard of Grafana's.
func readDashboard(file string) ([]panel, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d struct {
		Panels []struct {
			Title       string
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	var panels []panel
	for _, p := range d.Panels {
		one := panel{title: p.Title, seconds: p.FieldConfig.Defaults.Unit == "s"}
		for _, t := range p.Targets {
			one.queries = append(one.queries, query{t.Expr, t.LegendFormat})
		}
		panels = append(panels, one)
	}
	if len(panels) == 0 {
		return nil, fmt.Errorf("%s has no panels", file)
	}
	return panels, nil
}

const columns = 3

// write draws the panels as the dashboard has them, three in a row.
func write(w io.Writer, panels []panel) error {
	var plots [][]*plot.Plot
	for i, p := range panels {
		if i%columns == 0 {
			plots = append(plots, nil)
		}
		one, err := p.plot()
		if err != nil {
			return err
		}
		plots[len(plots)-1] = append(plots[len(plots)-1], one)
	}
	const title = "What Prometheus saw: the queries of dashboard.json"
	return picture.WritePNG(w, picture.Width, 20*vg.Centimeter, title, nil, plots)
}

var colours = []color.Color{
	picture.Blue, picture.Red, picture.Green, picture.Orange, picture.Sky, picture.Grey, color.Black,
}

func (p *panel) plot() (*plot.Plot, error) {
	y := ""
	if p.seconds {
		y = "s"
	}
	one := picture.Plot(p.title, "", y)
	one.Title.TextStyle.Font = picture.Sans(8)
	one.Legend.TextStyle.Font = picture.Sans(7)
	one.Legend.Top, one.Legend.Left = true, true
	top := 0.
	for i, c := range p.curves {
		var points plotter.XYs
		for _, at := range c.points {
			if !math.IsNaN(at.value) && !math.IsInf(at.value, 0) {
				points = append(points, plotter.XY{X: at.seconds, Y: at.value})
				top = max(top, at.value)
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = draw.LineStyle{Color: colours[i%len(colours)], Width: vg.Points(1.2)}
		one.Add(line)
		one.Legend.Add(strings.TrimSpace(c.name), line)
	}
	one.X.Min = 0
	one.Y.Max = max(1e-3, top) * (1.15 + 0.1*float64(len(p.curves))) // room for the legend
	return one, nil
}
