// Package palette has the colours and dashes of every chart of ours.
package palette

import "image/color"

// Colour is a series', on a light and on a dark ground.
type Colour struct{ Light, Dark color.RGBA }

// Series are the colours of a chart's series, in their order: those of Okabe and
// Ito, which the colour-blind tell apart, on a light ground (the fifth and the sixth
// darker, for lines as thin as ours), and lighter ones of the same hues on a dark one.
// Every chart of ours has them, the dashboard's by make generate. A chart with more
// series than colours takes them again with other dashes: see Look.
var Series = []Colour{
	{rgb(0x0072b2), rgb(0x6cb8f0)}, {rgb(0xd55e00), rgb(0xff9452)}, {rgb(0x009e73), rgb(0x4fd6ae)}, {rgb(0xcc79a7), rgb(0xe9a9cd)},
	{rgb(0xb97a00), rgb(0xf0c04a)}, {rgb(0x3b8fc2), rgb(0xa9dcff)}, {rgb(0x000000), rgb(0xffffff)},
}

// Dashes are the patterns of lines, as lengths drawn and left out in turn, in points;
// nil is a whole line.
var Dashes = [][]float64{nil, {8, 3}, {2, 2.5}, {9, 2.5, 2, 2.5}}

// Look returns colour and dashes of a chart's series of that number: no two of the first len(Series)*len(Dashes)
// are alike.
func Look(i int) (Colour, []float64) {
	return Series[i%len(Series)], Dashes[i/len(Series)%len(Dashes)]
}

func rgb(v uint32) color.RGBA {
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}
