//go:build !js || full

package dataset

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// PageSideDrawn is the side of a drawn page in pixels, as DiT and BEiT read it.
const PageSideDrawn = 224

// glyphs are letters, digits and signs of 3 x 5 pixels, row by row from the highest of 15 bits.
var glyphs = map[rune]uint16{
	'A': 0b010101111101101, 'B': 0b110101110101110, 'C': 0b011100100100011, 'D': 0b110101101101110, 'E': 0b111100110100111,
	'F': 0b111100110100100, 'G': 0b011100101101011, 'H': 0b101101111101101, 'I': 0b111010010010111, 'J': 0b001001001101010,
	'K': 0b101101110101101, 'L': 0b100100100100111, 'M': 0b101111111101101, 'N': 0b110101101101101, 'O': 0b010101101101010,
	'P': 0b110101110100100, 'Q': 0b010101101110011, 'R': 0b110101110101101, 'S': 0b011100010001110, 'T': 0b111010010010010,
	'U': 0b101101101101111, 'V': 0b101101101101010, 'W': 0b101101111111101, 'X': 0b101101010101101, 'Y': 0b101101010010010,
	'Z': 0b111001010100111, '0': 0b111101101101111, '1': 0b010110010010111, '2': 0b110001010100111, '3': 0b110001010001110,
	'4': 0b101101111001001, '5': 0b111100110001110, '6': 0b011100111101111, '7': 0b111001010010010, '8': 0b111101111101111,
	'9': 0b111101111001110, '.': 0b000000000000010, ',': 0b000000000010100, '-': 0b000000111000000, '/': 0b001001010100100,
	':': 0b000010000010000, '#': 0b101111101111101, '$': 0b011110011110010, '\'': 0b010010000000000,
}

// picture is the page that is drawn whenever it is used: words as a printer puts them, whatever a scanner reads, and the
// sender's logo in a colour of its own.
func (s *sender) picture(p *page) *Image {
	return drawn(p, fmt.Sprintf("%x %v", s.logo, s.right), s.stamp)
}

// DrawPage is the picture of a page with words where their boxes are, drawn whenever it is used.
func DrawPage(words []string, boxes [][4]uint16) *Image {
	return drawn(&page{words, boxes}, "", func(func(x, y int, colour [3]float32)) {})
}

// drawn is a page with something else on it, that what names.
func drawn(p *page, what string, more func(dot func(x, y int, colour [3]float32))) *Image {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q\n%v", DocumentsVersion, what, p.words, p.boxes))
	m := Deferred(func() (*Image, error) { return p.draw(more), nil })
	m.sum = sum[:]
	return m
}

func (p *page) draw(more func(dot func(x, y int, colour [3]float32))) *Image {
	m := newImage(PageSideDrawn, PageSideDrawn, 3)
	for i := range m.Pixels {
		m.Pixels[i] = 1
	}
	dot := func(x, y int, colour [3]float32) {
		if x < 0 || y < 0 || x >= m.Width || y >= m.Height {
			return
		}
		for c, v := range colour {
			m.Pixels[(c*m.Height+y)*m.Width+x] = v
		}
	}
	at := func(x int) int { return x * PageSideDrawn / PageSide }
	for i, w := range p.words {
		letters := []rune(strings.ToUpper(w))
		width := min(letterWidth, int(p.boxes[i][2]-p.boxes[i][0])/max(1, len(letters)))
		for k, r := range letters {
			x, y := at(int(p.boxes[i][0])+width*k), at(int(p.boxes[i][1]))
			for bit := range 15 {
				if glyphs[r]>>(14-bit)&1 == 1 {
					dot(x+bit%3, y+1+bit/3, [3]float32{})
				}
			}
		}
	}
	more(dot)
	return m
}

// stamp draws the logo.
func (s *sender) stamp(dot func(x, y int, colour [3]float32)) {
	const block = PageSideDrawn / logoGrid
	var colour [3]float32
	for c := range colour {
		colour[c] = float32(s.logo>>(8*c)&0xff) / 255 * 0.8
	}
	for x, y := range s.inked {
		for i := range block * block {
			dot(x*block+i%block, y*block+i/block, colour)
		}
	}
}
