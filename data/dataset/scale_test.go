package dataset

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// congruence is a picture that lab/bench/interop/pictures.py makes too.
func congruence(width, height, channels int, seed uint32) *Image {
	m := newImage(width, height, channels)
	state := seed
	for i := range width * height {
		for c := range channels {
			state = (state*1103515245 + 12345) % (1 << 31)
			m.Pixels[c*width*height+i] = float32(state>>16&255) / 255
		}
	}
	return m
}

// Fit gives what Pillow gives, bit for bit, at odd sizes in both directions: the columns
// first where the height shrinks by more, the rows first elsewhere, one alone.
func TestFitIsPillows(t *testing.T) {
	f, err := os.Open("testdata/pillow.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, cases := bufio.NewScanner(f), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var w, h, has, toW, toH, to int
		var seed uint32
		var text string
		if _, err := fmt.Sscan(lines.Text(), &w, &h, &has, &seed, &toW, &toH, &to, &text); err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(text)
		if err != nil || len(want) != toW*toH*to {
			t.Fatalf("%d x %d: %d bytes, %v", w, h, len(want), err)
		}
		cases++
		m := congruence(w, h, has, seed)
		if w == toW && h == toH && has == to {
			if m.Fit(toW, toH, to) != m {
				t.Errorf("%d x %d is made anew at its own size", w, h)
			}
		}
		got, wrong := m.Fit(toW, toH, to), 0
		if err := got.Check(); err != nil || got.Width != toW || got.Height != toH || got.Channels != to {
			t.Fatalf("%d x %d x %d: %v", got.Width, got.Height, got.Channels, err)
		}
		for i := range toW * toH {
			for c := range to {
				if level := int(math.Round(float64(255 * got.Pixels[c*toW*toH+i]))); level != int(want[i*to+c]) {
					wrong++
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%d x %d x %d to %d x %d x %d: %d of %d values differ", w, h, has, toW, toH, to, wrong, len(want))
		}
	}
	if err := lines.Err(); err != nil || cases < 20 {
		t.Errorf("%d cases, %v", cases, err)
	}
	grey := congruence(3, 2, 1, 1).Fit(3, 2, 3)
	if grey.Channels != 3 || grey.Pixels[0] != grey.Pixels[6] || len(grey.Pixels) != 18 {
		t.Errorf("grey as colour: %+v", grey)
	}
}

// A picture of more levels, or beyond white, is one of 256 once it is scaled.
func TestFitRounds(t *testing.T) {
	m := &Image{Width: 2, Height: 1, Channels: 1, Pixels: []float32{0.3337, 7}}
	if got := m.Fit(2, 3, 1); got.Pixels[0] != 85./255 || got.Pixels[5] != 1 {
		t.Errorf("%v", got.Pixels)
	}
}
