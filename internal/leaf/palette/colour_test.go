package palette

import (
	"fmt"
	"image/color"
	"math"
	"testing"
)

// TestColours: a line of every colour is seen on its ground, by the contrast that
// WCAG 2.2 asks of graphics (success criterion 1.4.11), and no two are alike.
func TestColours(t *testing.T) {
	luminance := func(c color.RGBA) float64 {
		part := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= 0.04045 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
	}
	contrast := func(a, b color.RGBA) float64 {
		x, y := luminance(a), luminance(b)
		return (max(x, y) + 0.05) / (min(x, y) + 0.05)
	}
	seen := map[color.RGBA]bool{}
	for i, c := range Series {
		if got := contrast(c.Light, rgb(0xffffff)); got < 3 {
			t.Errorf("colour %d on white: %.2f", i, got)
		}
		if got := contrast(c.Dark, rgb(0x1b212a)); got < 3 { // the dashboard's card in the dark
			t.Errorf("colour %d on the dark ground: %.2f", i, got)
		}
		if seen[c.Light] || seen[c.Dark] {
			t.Errorf("colour %d is another's", i)
		}
		seen[c.Light], seen[c.Dark] = true, true
	}
}

// TestLooks: a chart of many series has a look for each, the whole lines first.
func TestLooks(t *testing.T) {
	type look struct {
		c    Colour
		dash string
	}
	seen := map[look]int{}
	for i := range len(Series) * len(Dashes) {
		c, dash := Look(i)
		l := look{c, fmt.Sprint(dash)}
		if first, taken := seen[l]; taken {
			t.Errorf("series %d and %d look alike", first, i)
		}
		seen[l] = i
		if whole := i < len(Series); whole != (dash == nil) || len(dash)%2 != 0 {
			t.Errorf("series %d is dashed %v", i, dash)
		}
	}
	if len(seen) < 28 {
		t.Errorf("%d looks", len(seen))
	}
}
