package readers

import (
	"image"
	"image/color"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	scanner "github.com/makiuchi-d/gozxing/qrcode"

	"github.com/starling-fl/starling/internal/leaf/qrcode"
)

const link = "https://fl.example.org:8443/#starling2_hFggaHR0cHM6Ly9mbC5leGFtcGxlLm9yZzo4NDQzWCDPz8_Pz8_Pz8_Pz8_Pz8_Pz8_Pz8_Pz8_Pz8_Pz8_P9l"

// scan reads a picture of modules as a scanner does, written by others.
func scan(t *testing.T, size int, dark func(x, y int) bool) string {
	t.Helper()
	const scale = 6
	m := image.NewGray(image.Rect(0, 0, size*scale, size*scale))
	for y := range size * scale {
		for x := range size * scale {
			if !dark(x/scale, y/scale) {
				m.SetGray(x, y, color.Gray{Y: 255})
			}
		}
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(m)
	if err != nil {
		t.Fatal(err)
	}
	found, err := scanner.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found.GetText()
}

// What a terminal and a page show is read back by a scanner.
func TestScanned(t *testing.T) {
	c, err := qrcode.New(link)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(c.Terminal(), "\n"), "\n")
	var rows [][]rune
	for _, l := range lines {
		rows = append(rows, []rune(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(l, "")))
	}
	got := scan(t, c.Width(), func(x, y int) bool {
		switch rows[y/2][x] {
		case '█':
			return true
		case '▀':
			return y%2 == 0
		case '▄':
			return y%2 == 1
		}
		return false
	})
	if got != link {
		t.Errorf("a terminal shows %q", got)
	}
	black := map[[2]int]bool{}
	for _, m := range regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1`).FindAllStringSubmatch(c.SVG(), -1) {
		x, _ := strconv.Atoi(m[1])
		y, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		for i := range n {
			black[[2]int{x + i, y}] = true
		}
	}
	if got := scan(t, c.Width(), func(x, y int) bool { return black[[2]int{x, y}] }); got != link {
		t.Errorf("a page shows %q", got)
	}
}
