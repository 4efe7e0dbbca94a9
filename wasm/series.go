package wasm

import (
	"slices"
	"strconv"
)

// A model's layers have tensors of the same shapes, whose names differ in the layer's number. So a list of tensors stands
// in a section as series: tensors that follow one another Rounds times, in round r with names whose first number is r
// more, at offsets that are r steps on.
type seriesCode struct {
	_       struct{} `cbor:",toarray"`
	Rounds  int
	Tensors []tensorCode
}

const (
	maxSeries = 32      // tensors of a series that are looked for
	maxNumber = 1 << 20 // of a name, with all rounds
)

// numbered parts a name at its first number, which is none where it has no digits, zeros before it or too many.
func numbered(name string) (before string, n int, behind string, ok bool) {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	from := 0
	for from < len(name) && !digit(name[from]) {
		from++
	}
	to := from
	for to < len(name) && digit(name[to]) {
		to++
	}
	n, err := strconv.Atoi(name[from:to])
	if err != nil || n > maxNumber || to-from > 1 && name[from] == '0' {
		return "", 0, "", false
	}
	return name[:from], n, name[to:], true
}

// inRound is the tensor as round r of its series has it; moves are the steps of its offset and of its scales.
func (t Tensor) inRound(r int, moves []int64) (Tensor, error) {
	const where = "manifest"
	before, n, behind, ok := numbered(t.Name)
	switch want := 1 + min(1, len(t.scales())); {
	case !ok || n+r > maxNumber:
		return t, refuse(where, "%.128q in a series: no number, or none of at most %d", t.Name, maxNumber)
	case len(moves) != want:
		return t, refuse(where, "%.128q in a series: %d steps, want %d", t.Name, len(moves), want)
	}
	t.Name = before + strconv.Itoa(n+r) + behind
	at := func(from uint32, step int64) (uint32, bool) {
		if step < -maxMove || step > maxMove {
			return 0, false
		}
		n := int64(from) + int64(r)*step
		return uint32(n), n >= 0 && n < 1<<32
	}
	if t.Offset, ok = at(t.Offset, moves[0]); ok && t.NF4 != nil {
		q := *t.NF4
		q.Scales, ok = at(q.Scales, moves[1])
		t.NF4 = &q
	}
	if !ok {
		return t, refuse(where, "%.128q in a series: outside of any memory", t.Name)
	}
	return t, nil
}

// scales is where a tensor's scales are, if it has any.
func (t *Tensor) scales() []uint32 {
	if t.NF4 == nil {
		return nil
	}
	return []uint32{t.NF4.Scales}
}

// moves are the steps from t to u, and whether u is what follows t in a series with such.
func (t *Tensor) moves(u *Tensor) (steps []int64, ok bool) {
	if t.DType != u.DType || !slices.Equal(t.Shape, u.Shape) || (t.NF4 == nil) != (u.NF4 == nil) || t.NF4 != nil && t.NF4.Block != u.NF4.Block {
		return nil, false
	}
	a, n, b, ok := numbered(t.Name)
	c, m, d, okU := numbered(u.Name)
	if !ok || !okU || a != c || b != d || m != n+1 {
		return nil, false
	}
	steps = []int64{int64(u.Offset) - int64(t.Offset)}
	if t.NF4 != nil {
		steps = append(steps, int64(u.NF4.Scales)-int64(t.NF4.Scales))
	}
	return steps, true
}

// seriesOf finds the series of a list: from its beginning on the one that leaves most out, the shortest of several.
func seriesOf(tensors []Tensor) (out []seriesCode) {
	for len(tensors) > 0 {
		best, rounds, moves := 1, 1, [][]int64{nil}
		for period := 1; period <= min(maxSeries, len(tensors)/2); period++ {
			n, steps := roundsOf(tensors, period)
			if (n-1)*period > (rounds-1)*best {
				best, rounds, moves = period, n, steps
			}
		}
		s := seriesCode{Rounds: rounds, Tensors: tensorCodes(tensors[:best])}
		for i := range s.Tensors {
			s.Tensors[i].Moves = moves[i]
		}
		// Tensors that are in no series are in one of one round.
		if k := len(out) - 1; rounds == 1 && k >= 0 && out[k].Rounds == 1 {
			out[k].Tensors = append(out[k].Tensors, s.Tensors...)
		} else {
			out = append(out, s)
		}
		tensors = tensors[best*rounds:]
	}
	return out
}

// roundsOf is how often the first tensors of a list follow one another, and the steps of each.
func roundsOf(tensors []Tensor, period int) (rounds int, moves [][]int64) {
	for i := range period {
		steps, ok := tensors[i].moves(&tensors[period+i])
		if !ok {
			return 1, nil
		}
		moves = append(moves, steps)
	}
	for at := period; at+period <= len(tensors); at += period {
		for i := range period {
			if steps, ok := tensors[at-period+i].moves(&tensors[at+i]); !ok || !slices.Equal(steps, moves[i]) {
				return at / period, moves
			}
		}
	}
	return len(tensors) / period, moves
}

// tensorsOf writes series out: at most as many tensors as are left, which is counted before any of them is.
func tensorsOf(list []seriesCode, left *int) (out []Tensor, err error) {
	for _, s := range list {
		if s.Rounds < 1 || s.Rounds > maxTensors || len(s.Tensors) > maxTensors {
			return nil, refuse("manifest", "a series of %d tensors in %d rounds, limit %d", len(s.Tensors), s.Rounds, maxTensors)
		}
		if *left -= s.Rounds * len(s.Tensors); *left < 0 {
			return nil, refuse("manifest", "more than %d tensors", maxTensors)
		}
		for r := range s.Rounds {
			for _, c := range s.Tensors {
				t := Tensor{Name: c.Name, DType: c.DType, Shape: append([]int{}, c.Shape...), Offset: c.Offset}
				switch len(c.NF4) {
				case 0:
				case 2:
					t.NF4 = &NF4{Block: int(c.NF4[0]), Scales: c.NF4[1]}
				default:
					return nil, refuse("manifest", "%.128q: %d numbers of NF4, want block and scales", c.Name, len(c.NF4))
				}
				if s.Rounds > 1 {
					if len(t.Name) > 128 || len(t.Shape) > maxRank { // before there are many of them
						return nil, refuse("manifest", "%.128q: rank %d, limits 128 bytes and %d", t.Name, len(t.Shape), maxRank)
					}
					if t, err = t.inRound(r, c.Moves); err != nil {
						return nil, err
					}
				} else if len(c.Moves) > 0 {
					return nil, refuse("manifest", "%.128q: it moves, and is in no series", c.Name)
				}
				out = append(out, t)
			}
		}
	}
	return out, nil
}

func tensorCodes(tensors []Tensor) []tensorCode {
	var out []tensorCode
	for _, t := range tensors {
		c := tensorCode{Name: t.Name, DType: t.DType, Shape: t.Shape, Offset: t.Offset}
		if t.NF4 != nil {
			c.NF4 = []uint32{uint32(t.NF4.Block), t.NF4.Scales}
		}
		out = append(out, c)
	}
	return out
}
