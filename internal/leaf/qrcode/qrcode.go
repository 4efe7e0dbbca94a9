// Package qrcode draws a text as a QR code (ISO/IEC 18004) where people scan it:
// in a terminal, or on a page.
package qrcode

import (
	"fmt"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// margin is the quiet zone around a code, in modules; the standard asks for 4.
const margin = 4

// Code is a square of modules.
type Code struct {
	size int // without margin
	dark func(x, y int) bool
}

// New encodes a text of at most 2,953 bytes at the lowest level of error
// correction: a screen has no scratches, and a smaller code is read from farther.
func New(text string) (Code, error) {
	c, err := qr.Encode(text, qr.L, qr.Auto)
	if err != nil {
		return Code{}, fmt.Errorf("qrcode: %d bytes: %w", len(text), err)
	}
	return Code{c.Bounds().Dx(), func(x, y int) bool {
		r, _, _, _ := c.At(x, y).RGBA()
		return r == 0
	}}, nil
}

// Width is the number of characters of each of Terminal's lines.
func (c Code) Width() int { return c.size + 2*margin }

// Terminal draws two rows of modules a line with half blocks, dark on light
// whatever the terminal's own colours are.
func (c Code) Terminal() string {
	const begin, end = "\x1b[30;107m", "\x1b[0m\n" // black on bright white
	var b strings.Builder
	at := func(x, y int) bool {
		x, y = x-margin, y-margin
		return x >= 0 && y >= 0 && x < c.size && y < c.size && c.dark(x, y)
	}
	for y := 0; y < c.Width(); y += 2 {
		b.WriteString(begin)
		for x := range c.Width() {
			b.WriteString([...]string{" ", "▀", "▄", "█"}[bit(at(x, y))+2*bit(at(x, y+1))])
		}
		b.WriteString(end)
	}
	return b.String()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SVG is the code as an image of its own, black on white.
func (c Code) SVG() string {
	var path strings.Builder
	for y := range c.size {
		for x := 0; x < c.size; x++ {
			n := 0
			for x+n < c.size && c.dark(x+n, y) {
				n++
			}
			if n > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", x+margin, y+margin, n, n)
				x += n
			}
		}
	}
	w := c.Width()
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" shape-rendering="crispEdges">`+
		`<path fill="#fff" d="M0 0h%dv%dH0z"/><path d="%s"/></svg>`, w, w, w, w, path.String())
}
