package kernel

import "math/rand/v2"

// thin makes a product of few rows, or of one more, with columns in 4 bits whose blocks go along them, as random does.
func thin(rnd *rand.Rand) (p Product, memory int) {
	rows, cols, terms := 1+rnd.IntN(fewRows+1), 1+rnd.IntN(40), nf4Block*(1+rnd.IntN(20))
	room := nf4Block * rnd.IntN(2) // between columns
	along := 1 + rnd.IntN(2)       // from one term of A to the next
	p.Fused = rnd.IntN(2) == 0
	p.Rows = []Axis{{Size: rows, A: along * terms, C: cols}}
	p.Cols = []Axis{{Size: cols, B: terms + room, C: 1}}
	p.Terms = []Axis{{Size: terms / 2, A: 2 * along, B: 2}, {Size: 2, A: along, B: 1}}
	n := cols * (terms + room)
	p.B = nf4Block * rnd.IntN(2)
	if rnd.IntN(3) == 0 { // the last column first
		p.B, p.Cols[0].B = p.B+n-terms-room, -terms-room
	}
	p.NF4 = &NF4{Len: n + nf4Block + rnd.IntN(8), Block: nf4Block}
	blocks, words := ceil(p.NF4.Len, nf4Block), ceil(p.NF4.Len, 8)
	p.NF4.Codes = 4*words - (p.NF4.Len+1)/2
	p.NF4.Scales = 4 * words
	p.A = p.NF4.Scales + 4*blocks
	p.C = p.A + 4*along*terms*rows
	return p, p.C + 4*rows*cols
}
