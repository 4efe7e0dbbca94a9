package model

import (
	"cmp"
	"fmt"
	"strings"
)

// Suffixes of LoRA's tensors, PEFT's.
const (
	loraA = ".lora_A.weight"
	loraB = ".lora_B.weight"
)

// DeltaSuffix ends the name of a difference from a tensor of the base.
const DeltaSuffix = ".delta"

// Kinds of trainable tensors.
type Kind uint8

const (
	KindA       Kind = iota // LoRA A [r, in]: rank b uses the first b rows
	KindB                   // LoRA B [out, r]: rank b uses the first b columns
	KindHead                // of the head, trained whole at every rank
	KindDelta               // difference from a tensor of the base, trained whole at every rank
	KindAdapter             // of a bottleneck that the base does not have, trained whole at every rank
)

// Entry is one trainable tensor of a layout.
type Entry struct {
	Name  string
	Kind  Kind
	Shape []int // at r_max
	Start Start
}

// Start describes the initial values of a tensor of a fresh adapter.
type Start uint8

const (
	StartZero    Start = iota
	StartUniform       // in +-1/sqrt(columns), drawn from the adapter's seed
	StartOne
	StartIdentity // of a square matrix
)

// ShapeAt is the entry's shape at rank b.
func (e Entry) ShapeAt(b int) []int {
	switch e.Kind {
	case KindA:
		return []int{b, e.Shape[1]}
	case KindB:
		return []int{e.Shape[0], b}
	}
	return e.Shape
}

// Layout is the one order of the trainable tensors that turns an adapter with
// its head, at rank b, into one vector and back:
//
//	for each linear map m that LoRA changes, in the order of a forward pass (each
//	layer's query and value, unless the method names others):
//	    m.lora_A.weight  [b, in]
//	    m.lora_B.weight  [out, b]
//	for each bottleneck of the methods adapter and compacter: see bottleneck.go
//	for each tensor t of the base that is trained whole, in the base's order:
//	    t.delta
//	box_embeddings.weight  [hidden, 4], where the method has boxes
//	for each trained map m of the head (Config.Head), out its columns or the outputs:
//	    m.weight  [out, in], in the columns of the map before it, of the first hidden
//	    m.bias    [out]
//	or, where masked tokens are told, the tensors of Config.MaskedHead
//
// each row-major, names as the base's family has them. Rank 0 leaves LoRA out.
// A Layout is immutable.
type Layout struct {
	Config  Config
	Method  Method
	Classes int
	entries []Entry
}

// NewLayout checks the parts against each other and returns their layout.
// classes is the number of labels, 2..65536; 0 where the task has none.
func NewLayout(c Config, l Method, classes int) (*Layout, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := l.Validate(c); err != nil {
		return nil, err
	}
	l.Task = c.Settled(l.Task)
	if !l.Task.Labelled() && classes != 0 {
		return nil, fmt.Errorf("%w: %d classes, but task %s has none", ErrConfig, classes, l.Task)
	}
	if l.Task.Labelled() && (classes < 2 || classes > maxClasses) {
		return nil, fmt.Errorf("%w: %d classes, want 2..%d", ErrConfig, classes, maxClasses)
	}
	c = c.For(l.Task)
	lay := &Layout{Config: c, Method: l, Classes: classes}
	h, r := c.HiddenSize, l.RMax
	for _, m := range l.adapted(c) {
		lay.entries = append(lay.entries,
			Entry{m.name + loraA, KindA, []int{r, m.in}, StartUniform},
			Entry{m.name + loraB, KindB, []int{m.out, r}, StartZero})
	}
	lay.entries = append(lay.entries, l.bottleneckEntries(c)...)
	for _, t := range l.whole(c) {
		lay.entries = append(lay.entries, Entry{t.Name + DeltaSuffix, KindDelta, t.Shape, StartZero})
	}
	if l.Boxes() {
		lay.entries = append(lay.entries, Entry{boxWeight, KindAdapter, []int{h, 4}, StartZero})
	}
	if entries := l.Task.of().entries; entries != nil {
		lay.entries = append(lay.entries, entries(c)...)
	}
	head, in := c.HeadFor(l.Task), h
	for i, d := range head {
		out, start := cmp.Or(d.Out, h), StartUniform
		if i == len(head)-1 {
			out, start = lay.Outputs(), StartZero
		}
		if d.Trained {
			lay.entries = append(lay.entries,
				Entry{d.Name + ".weight", KindHead, []int{out, in}, start},
				Entry{d.Name + ".bias", KindHead, []int{out}, StartZero})
		}
		in = out
	}
	return lay, nil
}

// Outputs is the number of scores that the head gives: of each class, of an answer's
// begin and end, or of each token that a masked one may have been.
func (l *Layout) Outputs() int {
	if outputs := l.Method.Task.of().outputs; outputs != nil {
		return outputs(l.Config)
	}
	return l.Classes
}

// Entries lists the tensors in order. The caller must not change it.
func (l *Layout) Entries() []Entry { return l.entries }

// Changes is the name of the base's tensor that a LoRA tensor or a difference
// changes.
func (e Entry) Changes() string {
	switch e.Kind {
	case KindA:
		return strings.TrimSuffix(e.Name, loraA) + ".weight"
	case KindB:
		return strings.TrimSuffix(e.Name, loraB) + ".weight"
	}
	return strings.TrimSuffix(e.Name, DeltaSuffix)
}

// HeadSize is the number of the head's values in the vector, at every rank.
func (l *Layout) HeadSize() int {
	n := 0
	for _, e := range l.entries {
		if e.Kind == KindHead {
			n += Elements(e.Shape)
		}
	}
	return n
}

// CheckRank refuses a rank outside 0..r_max.
func (l *Layout) CheckRank(b int) error {
	if b < 0 || b > l.Method.RMax {
		return fmt.Errorf("model: rank %d, want 0..%d", b, l.Method.RMax)
	}
	return nil
}

// CheckSlice refuses a rank outside 0..r_max, and a slice that has not Size(rank)
// values.
func (l *Layout) CheckSlice(slice []float32, b int) error {
	if err := l.CheckRank(b); err != nil {
		return err
	}
	if want := l.Size(b); len(slice) != want {
		return fmt.Errorf("model: adapter has %d values at rank %d, want %d", len(slice), b, want)
	}
	return nil
}

// Size is the length of the vector at rank b (0 counts no LoRA tensor).
func (l *Layout) Size(b int) int {
	n := 0
	for _, e := range l.entries {
		n += Elements(e.ShapeAt(b))
	}
	return n
}

// Span is where one tensor is in the vector at a rank.
type Span struct {
	Entry
	Shape  []int // at that rank; has a zero at rank 0 for LoRA tensors
	Offset int   // first element
	Len    int
}

// Spans lists where every tensor is in the vector at rank b.
func (l *Layout) Spans(b int) []Span {
	spans := make([]Span, len(l.entries))
	off := 0
	for i, e := range l.entries {
		s := e.ShapeAt(b)
		spans[i] = Span{Entry: e, Shape: s, Offset: off, Len: Elements(s)}
		off += spans[i].Len
	}
	return spans
}
