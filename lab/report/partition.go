package report

import (
	"errors"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/lab/canvas"
)

// PartitionPlot draws how examples of classes are at clients: a disc for each class and
// client, whose area is the number of examples a_ij, as publications show partitions.
// counts has a row a class and a column a client.
func PartitionPlot(labels []string, counts [][]int) (Plot, error) {
	p := canvas.Plot("Examples of each class at each client", "client", "class")
	most, clients := 1, 0
	var at plotter.XYs
	var size []int
	for i, row := range counts {
		clients = len(row)
		for j, n := range row {
			if most = max(most, n); n > 0 {
				at, size = append(at, plotter.XY{X: float64(j), Y: float64(len(counts) - 1 - i)}), append(size, n)
			}
		}
	}
	if len(at) == 0 {
		return Plot{}, errors.New("report: a partition without examples")
	}
	discs, err := plotter.NewScatter(at)
	if err != nil {
		return Plot{}, err
	}
	look, _ := palette.Look(0)
	discs.GlyphStyleFunc = func(k int) draw.GlyphStyle {
		return draw.GlyphStyle{Color: look.Light, Shape: draw.CircleGlyph{}, Radius: vg.Points(7.5 * math.Sqrt(float64(size[k])/float64(most)))}
	}
	p.Add(discs)
	var ticks []plot.Tick
	for i, l := range labels {
		ticks = append(ticks, plot.Tick{Value: float64(len(labels) - 1 - i), Label: fmt.Sprintf("%.24s", l)})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -1, float64(clients), -1, float64(len(labels))
	out := Plot{Name: "partition", Title: p.Title.Text, Caption: fmt.Sprintf("Areas are numbers of examples; the largest disc is %d.", most)}
	err = out.render(func(w io.Writer, format string) error {
		return canvas.Write(w, format, p, oneWide*vg.Centimeter, panelHeight*vg.Centimeter)
	})
	return out, err
}
