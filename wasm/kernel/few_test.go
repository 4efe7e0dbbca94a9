package kernel

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/starling-fl/starling/quant/nf4"
)

// thin makes a product of few rows, or of one more, with columns in 4 bits whose blocks go along them, as random does.
func thin(rnd *rand.Rand) (p Product, memory int) {
	rows, cols, terms := 1+rnd.IntN(fewRows+1), 1+rnd.IntN(40), nf4.Block*(1+rnd.IntN(20))
	room := nf4.Block * rnd.IntN(2) // between columns
	along := 1 + rnd.IntN(2)        // from one term of A to the next
	p.Fused = rnd.IntN(2) == 0
	p.Rows = []Axis{{Size: rows, A: along * terms, C: cols}}
	p.Cols = []Axis{{Size: cols, B: terms + room, C: 1}}
	p.Terms = []Axis{{Size: terms / 2, A: 2 * along, B: 2}, {Size: 2, A: along, B: 1}}
	n := cols * (terms + room)
	p.B = nf4.Block * rnd.IntN(2)
	if rnd.IntN(3) == 0 { // the last column first
		p.B, p.Cols[0].B = p.B+n-terms-room, -terms-room
	}
	p.NF4 = &NF4{Len: n + nf4.Block + rnd.IntN(8), Block: nf4.Block}
	blocks, words := ceil(p.NF4.Len, nf4.Block), ceil(p.NF4.Len, 8)
	p.NF4.Codes = 4*words - (p.NF4.Len+1)/2
	p.NF4.Scales = 4 * words
	p.A = p.NF4.Scales + 4*blocks
	p.C = p.A + 4*along*terms*rows
	return p, p.C + 4*rows*cols
}

// asked counts how often it is asked whether it has ended, and ends at the third time.
type asked struct {
	context.Context
	times *atomic.Int32
}

func (a asked) Err() error {
	if a.times.Add(1) >= 3 {
		return context.Canceled
	}
	return nil
}

// However many terms a product has, who stops it is heard.
func TestFewStops(t *testing.T) {
	const terms = 64 * maxCodes
	q := &NF4{Scales: terms / 2, Len: terms, Block: nf4.Block}
	p := Product{NF4: q, A: q.Scales + terms/16, Cols: []Axis{{Size: 16, C: 1}}, Terms: []Axis{{Size: terms, B: 1}}}
	p.C = p.A + 4
	memory := make([]float32, p.C/4+16)
	for i := q.Scales / 4; i < len(memory); i++ {
		memory[i] = 1
	}
	for _, kernel := range Native() {
		pl, err := Prepare(p, 4*len(memory))
		if err != nil || !pl.thin {
			t.Fatal(err, pl)
		}
		var times atomic.Int32
		if err := kernel.Run(asked{t.Context(), &times}, pl, bytesOf(memory), nil); !errors.Is(err, context.Canceled) || times.Load() > 6 {
			t.Errorf("%s: %v after it was asked %d times", kernel.name, err, times.Load())
		}
		// All levels are -1: a whole product is -terms.
		if got := memory[p.C/4]; got <= -terms {
			t.Errorf("%s: %v, it was computed to the end", kernel.name, got)
		}
	}
}
