package wasm

import (
	"fmt"
	"slices"
)

// Repeat says that some of a step's segments run Rounds times in place of once: exports First to First+Count-1, in
// order, then again. They take the number of the round, an i32 that counts from 0, and reach other memory by it. So a
// model's layers are a few functions, however many there are.
type Repeat struct {
	_      struct{} `cbor:",toarray"`
	First  int      `json:"first"`
	Count  int      `json:"count"`
	Rounds int      `json:"rounds"`
}

// Move describes how a number changes with a repeat's round: it grows by Step each round, and by Odd more in every
// other one.
type Move struct {
	Step int64 `json:"step"`
	Odd  int64 `json:"odd"`
}

// At returns the number in a round, where it is start in round 0.
func (m Move) At(start int64, round int) int64 {
	return start + int64(round)*m.Step + int64(round&1)*m.Odd
}

// Moves says how what a product in a Repeat works on follows from the round: the addresses of A, B and C, and the place
// of its 4-bit tensor among the frozen ones.
type Moves struct {
	A   Move `json:"a"`
	B   Move `json:"b"`
	C   Move `json:"c"`
	NF4 Move `json:"nf4"`
}

// repeated reports whether an export is in a repeat.
func (m *Manifest) repeated(export int) bool {
	return slices.ContainsFunc(m.Repeats, func(r Repeat) bool { return export >= r.First && export < r.First+r.Count })
}

// Call is a segment of a step as it runs: its export's number, and the round that it is told. Exports outside of repeats
// are told nothing.
type Call struct {
	Segment int
	Round   int
	Told    bool
}

// name is the segment's for people.
func (c Call) name(prepare bool) string {
	if c.Told {
		return fmt.Sprintf("%s, round %d", segmentExport(prepare, c.Segment), c.Round)
	}
	return segmentExport(prepare, c.Segment)
}

// Calls lists a step's segments with all rounds. The repeats must be valid.
func (m *Manifest) Calls() (out []Call) {
	export := 0
	upTo := func(end int) {
		for ; export < end; export++ {
			out = append(out, Call{Segment: export})
		}
	}
	for _, r := range m.Repeats {
		upTo(r.First)
		for round := range r.Rounds {
			for i := range r.Count {
				out = append(out, Call{r.First + i, round, true})
			}
		}
		export = r.First + r.Count
	}
	upTo(len(m.Segments))
	return out
}

// checkRepeats refuses repeats that overlap, are not in order, or make a step of too many segments. It is asked before
// anything is written out, so that a few bytes do not stand for much memory.
func (m *Manifest) checkRepeats() error {
	next, segments := 0, len(m.Segments)
	for i, r := range m.Repeats {
		where := fmt.Sprintf("repeat %d", i)
		if r.First < next || r.First >= len(m.Segments) || r.Count < 1 || r.Count > len(m.Segments)-r.First {
			return refuse(where, "%d segments from s%d on: not in order, or not among the step's %d", r.Count, r.First, len(m.Segments))
		}
		if r.Rounds < 2 || r.Rounds > maxCalls {
			return refuse(where, "%d rounds, want 2 to %d", r.Rounds, maxCalls)
		}
		next = r.First + r.Count
		if segments += r.Count * (r.Rounds - 1); segments > maxCalls {
			return refuse(where, "%d segments with all rounds, limit %d", segments, maxCalls)
		}
	}
	return nil
}

// Unrolled returns the step that m describes without repeats: each round's segments and products written out. It shares
// everything else with m, whose repeats must be valid.
func (m *Manifest) Unrolled() (*Manifest, error) {
	flat := *m
	flat.Repeats, flat.Segments, flat.Products = nil, nil, nil
	repeats, list := m.Repeats, m.Products
	at := 0
	// copied appends the segments up to an export with their products, as a round has them.
	copied := func(from, to int, products []Product, round int, told bool) error {
		behind := len(flat.Segments) - from
		flat.Segments = append(flat.Segments, m.Segments[from:to]...)
		for _, p := range products {
			p, err := p.inRound(round, told, m.Frozen)
			if err != nil {
				return refuse(fmt.Sprintf("product at s%d, round %d", p.First, round), "%v", err)
			}
			p.First += behind
			flat.Products = append(flat.Products, p)
		}
		return nil
	}
	before := func(end int) (taken []Product) {
		for n := range list {
			if list[n].First >= end {
				taken, list = list[:n], list[n:]
				return taken
			}
		}
		taken, list = list, nil
		return taken
	}
	for ; len(repeats) > 0; repeats = repeats[1:] {
		r := repeats[0]
		if err := copied(at, r.First, before(r.First), 0, false); err != nil {
			return nil, err
		}
		products := before(r.First + r.Count)
		if len(products) > r.Count { // before they are written out
			return nil, refuse(fmt.Sprintf("repeat at s%d", r.First), "%d products for %d segments", len(products), r.Count)
		}
		for _, p := range products {
			if p.First+p.Count > r.First+r.Count {
				return nil, refuse(fmt.Sprintf("product at s%d", p.First), "%d segments reach beyond its repeat", p.Count)
			}
		}
		for round := range r.Rounds {
			if err := copied(r.First, r.First+r.Count, products, round, true); err != nil {
				return nil, err
			}
		}
		at = r.First + r.Count
	}
	if err := copied(at, len(m.Segments), list, 0, false); err != nil {
		return nil, err
	}
	return &flat, nil
}

// inRound is the product as a round has it. Those of repeats say how they move, others do not.
func (p Product) inRound(round int, told bool, frozen []Tensor) (Product, error) {
	if (p.Moves != nil) != told {
		return p, fmt.Errorf("products in repeats say how they move, others do not")
	}
	if !told {
		return p, nil
	}
	mv := p.Moves
	p.Moves = nil
	for _, n := range mv.numbers() {
		if n < -maxMove || n > maxMove {
			return p, fmt.Errorf("it moves by %d, limit %d either way", n, int64(maxMove))
		}
	}
	for _, o := range []struct {
		at *uint32
		by Move
	}{{&p.A, mv.A}, {&p.B, mv.B}, {&p.C, mv.C}} {
		n := o.by.At(int64(*o.at), round)
		if n < 0 || n >= 1<<32 {
			return p, fmt.Errorf("address %d is outside of any memory", n)
		}
		*o.at = uint32(n)
	}
	if p.NF4 == 0 {
		if mv.NF4 != (Move{}) {
			return p, fmt.Errorf("it has no 4-bit tensor, and says how that moves")
		}
		return p, nil
	}
	n := mv.NF4.At(int64(p.NF4), round)
	if n < 1 || n > int64(len(frozen)) {
		return p, fmt.Errorf("its 4-bit tensor is %d of %d", n, len(frozen))
	}
	p.NF4 = int(n)
	return p, nil
}
