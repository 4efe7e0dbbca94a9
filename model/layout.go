package model

import "fmt"

// Kinds of trainable tensors.
type Kind uint8

const (
	KindA    Kind = iota // LoRA A [r, in]: rank b uses the first b rows
	KindB                // LoRA B [out, r]: rank b uses the first b columns
	KindHead             // trained whole at every rank
)

// Entry is one trainable tensor of a layout.
type Entry struct {
	Name  string
	Kind  Kind
	Shape []int // at r_max
}

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
//	for each layer l = 0..L-1:
//	    encoder.layer.l.attention.self.query.lora_A.weight  [b, hidden]
//	    encoder.layer.l.attention.self.query.lora_B.weight  [hidden, b]
//	    encoder.layer.l.attention.self.value.lora_A.weight  [b, hidden]
//	    encoder.layer.l.attention.self.value.lora_B.weight  [hidden, b]
//	classifier.weight  [classes, hidden]
//	classifier.bias    [classes]
//
// each row-major. Rank 0 is the head alone. A Layout is immutable.
type Layout struct {
	Config  Config
	LoRA    LoRA
	Classes int
	entries []Entry
}

// NewLayout checks the parts against each other and returns their layout.
// classes is the number of labels, 2..65536.
func NewLayout(c Config, l LoRA, classes int) (*Layout, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := l.Validate(c); err != nil {
		return nil, err
	}
	if classes < 2 || classes > maxClasses {
		return nil, fmt.Errorf("%w: %d classes, want 2..%d", ErrConfig, classes, maxClasses)
	}
	lay := &Layout{Config: c, LoRA: l, Classes: classes}
	h, r := c.HiddenSize, l.RMax
	for i := range c.NumHiddenLayers {
		for _, m := range []string{"query", "value"} {
			p := LayerPrefix(i) + "attention.self." + m
			lay.entries = append(lay.entries,
				Entry{p + ".lora_A.weight", KindA, []int{r, h}},
				Entry{p + ".lora_B.weight", KindB, []int{h, r}})
		}
	}
	lay.entries = append(lay.entries,
		Entry{"classifier.weight", KindHead, []int{classes, h}},
		Entry{"classifier.bias", KindHead, []int{classes}})
	return lay, nil
}

// Entries lists the tensors in order. The caller must not change it.
func (l *Layout) Entries() []Entry { return l.entries }

// CheckRank refuses a rank outside 0..r_max.
func (l *Layout) CheckRank(b int) error {
	if b < 0 || b > l.LoRA.RMax {
		return fmt.Errorf("model: rank %d, want 0..%d", b, l.LoRA.RMax)
	}
	return nil
}

// Size is the length of the vector at rank b (0 counts the head alone).
func (l *Layout) Size(b int) int {
	n := 0
	for _, e := range l.entries {
		n += Elements(e.ShapeAt(b))
	}
	return n
}

// Span is where one tensor lies in the vector at a rank.
type Span struct {
	Entry
	Shape  []int // at that rank; has a zero at rank 0 for LoRA tensors
	Offset int   // first element
	Len    int
}

// Spans lists where every tensor lies in the vector at rank b.
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
