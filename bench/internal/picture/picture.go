// Package picture draws plots side by side on one canvas, all in the same style.
package picture

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Colours that colour-blind readers can tell apart.
var (
	Blue   = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	Sky    = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	Red    = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	Orange = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	Green  = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	Grey   = color.RGBA{0x77, 0x77, 0x77, 0xff}
	Pale   = color.RGBA{0xe4, 0xe4, 0xe4, 0xff}
)

// Width is that of all pictures: on a page of a README, some 900 pixels wide, their text is then as large as the
// page's.
const Width = 23 * vg.Centimeter

// Plot returns an empty plot, its text in the sizes that all pictures have.
func Plot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font = Sans(11)
	p.Title.Padding = vg.Points(4)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = Sans(10)
		axis.Tick.Label.Font = Sans(9)
	}
	return p
}

// Sans returns the font of all pictures.
func Sans(points vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: points}
}

// Every puts a label at all multiples of a number, from 0 on.
type Every int

func (e Every) Ticks(_, to float64) (ticks []plot.Tick) {
	for n := 0; float64(n) <= to; n += int(e) {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	return ticks
}

// A Key is an entry of the legend.
type Key struct {
	Name  string
	Thumb plot.Thumbnailer
}

// WritePNG draws rows of plots under a title, with a legend below the title, keys in
// rows of their own, left to right.
func WritePNG(w io.Writer, width, height vg.Length, title string, keys [][]Key, plots [][]*plot.Plot) error {
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(160))
	c := draw.Crop(draw.New(canvas), vg.Points(8), -vg.Points(12), vg.Points(6), -vg.Points(8))

	style := text.Style{
		Color: color.Black, Font: Sans(13), XAlign: text.XCenter, YAlign: text.YTop, Handler: plot.DefaultTextHandler,
	}
	c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y}, title)

	const line = 16 // points
	top := c.Max.Y - vg.Points(26)
	for i, row := range keys {
		for j, key := range row {
			legend := plot.NewLegend()
			legend.TextStyle.Font = Sans(10)
			legend.Left = true
			legend.Add(key.Name, key.Thumb)
			cell := c
			cell.Max.Y = top - vg.Points(line*float64(i))
			cell.Min.Y = cell.Max.Y - vg.Points(line)
			cell.Min.X = c.Min.X + vg.Points(40) + (c.Max.X-c.Min.X-vg.Points(40))*vg.Length(j)/vg.Length(len(row))
			legend.Draw(cell)
		}
	}

	c.Max.Y = top - vg.Points(line*float64(len(keys))) - vg.Points(8)
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: vg.Points(14), PadY: vg.Points(14)}
	for i, row := range plot.Align(plots, tiles, c) {
		for j, cell := range row {
			plots[i][j].Draw(cell)
		}
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
