package contract

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/internal/leaf/l2"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// StartBounds are the published bounds of what a round begins with: how far each tensor of the
// adapter may be from a fresh one's. They are about three times what honest jobs came to over the
// embedded base, with the noise of a simulated epsilon of 2 and 30 clients a round:
//
//	job                                rows of A    B  head rows  head biases  whole
//	500 rounds of invoices, AdamW            3.2  7.9         82           24
//	300 rounds of R8, all linear maps        4.3   13         19           20
//	300 rounds of invoices, SGD              4.7  5.0        4.1          0.6
//	300 rounds of invoices, BitFit                            42           11     14
//
// Over other bases starts stay as far below (500 rounds by lab/bench/bounds, LoRA of rank 8, seed 1; shares of the
// bounds, no start of 59,520 device-rounds scaled back):
//
//	job                        rows of A    B  head rows  head biases
//	R8, embedded base               17 %   10          4            9
//	R8, MiniLM                      13 %    8          6            3
//	generated documents, T5         17 %   11          -            -
//	generated commands, Llama       16 %    7          -            -
//
// Starts that have an update hold one text's embeddings have a B of 1e3 to 1e6. The product of A
// and B has no bound: if A is 0 it is 0, whatever B is. B is bounded at the scale of rank_max: where a job scales
// by rank, a round at rank b lets it do rank_max/b times as much. The head's bounds are so wide that a bias can
// still pick a label. They are a fence, and no proof: that is a device's own noise.
func StartBounds() wire.Bounds {
	return wire.Bounds{A: 12, B: 40, Head: 250, Bias: 75, Whole: 60, Modules: 30}
}

// Bounds are a job's bounds of what its rounds begin with: those announced, and the published one
// for each that is not.
func Bounds(announced wire.Bounds) wire.Bounds {
	usual := StartBounds()
	from := PartsOf(&usual)
	for i, part := range PartsOf(&announced) {
		if *part.Most == 0 {
			*part.Most = *from[i].Most
		}
	}
	return announced
}

// BoundPart names one of a job's bounds.
type BoundPart struct {
	Key  string // of bounds in a job file
	Most *float64
}

// PartsOf lists all bounds, always in one order.
func PartsOf(b *wire.Bounds) []BoundPart {
	return []BoundPart{{"a", &b.A}, {"b", &b.B}, {"head", &b.Head}, {"bias", &b.Bias}, {"whole", &b.Whole}, {"modules", &b.Modules}}
}

// projected is the share of a bound to which an honest coordinator takes a tensor back: what is
// left is for the rounding of its way to devices.
const projected = 0.95

// limit is what bounds one tensor: its rows' L2 norms where rows is not 0, else its own; the largest
// of its values where each is.
type limit struct {
	key  string // of Bounds
	rows int    // values of a row; 0: the tensor is one
	each bool   // every value by itself
	most float64
}

// limitOf is the limit of a tensor. The bound on a factor B is one on what it does at rank_max: a
// large scale makes it as much less.
func limitOf(l *model.Layout, s model.Span, b wire.Bounds) limit {
	matrix := len(s.Shape) == 2
	row := 0
	if matrix {
		row = s.Shape[1]
	}
	switch s.Kind {
	case model.KindA:
		return limit{"a", row, false, b.A + freshRow(s)}
	case model.KindB:
		return limit{"b", 0, false, b.B / max(1, l.Method.Scale(l.Method.RMax))}
	case model.KindHead:
		if !matrix {
			return limit{"bias", 0, true, b.Bias + freshRow(s)}
		}
		return limit{"head", row, false, b.Head + freshRow(s)}
	case model.KindDelta:
		return limit{"whole", 0, false, b.Whole}
	}
	return limit{"modules", row, false, b.Modules + freshRow(s)}
}

// freshRow bounds the norm of a fresh tensor's row, and each value of one without rows.
func freshRow(s model.Span) float64 {
	switch {
	case s.Entry.Start == model.StartOne && len(s.Shape) == 2:
		return math.Sqrt(float64(s.Shape[1]))
	case s.Entry.Start == model.StartZero:
		return 0
	}
	return 1
}

// over calls found with each part of a start that is beyond its limit, until that returns false.
func over(l *model.Layout, rank int, values []float32, b wire.Bounds, found func(s model.Span, part []float32, have float64, most limit) bool) {
	eachPart(l, rank, values, b, func(s model.Span, part []float32, have float64, most limit) bool {
		return have <= most.most || found(s, part, have, most)
	})
}

// eachPart calls found with each part of a start that a limit holds for, until that returns false.
func eachPart(l *model.Layout, rank int, values []float32, b wire.Bounds, found func(s model.Span, part []float32, have float64, most limit) bool) {
	for _, s := range l.Spans(rank) {
		if s.Len == 0 {
			continue
		}
		most := limitOf(l, s, b)
		size := s.Len
		if most.rows > 0 {
			size = most.rows
		}
		if most.each {
			size = 1
		}
		for at := s.Offset; at < s.Offset+s.Len; at += size {
			part := values[at : at+size]
			if !found(s, part, l2.Norm(part), most) {
				return
			}
		}
	}
}

// A StartError is a start that is beyond a bound.
type StartError struct {
	Tensor     string
	Key        string  // of the bound
	Have, Most float64 // L2 norm
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s has a norm of %.4g, and bounds.%s allows %.4g", e.Tensor, e.Have, e.Key, e.Most)
}

// CheckStart refuses what a round begins with, the layout's values at a rank, if a tensor of it is
// beyond the bounds or not finite; the error is a *StartError.
func CheckStart(l *model.Layout, rank int, values []float32, b wire.Bounds) (err error) {
	over(l, rank, values, b, func(s model.Span, _ []float32, have float64, most limit) bool {
		err = &StartError{s.Name, most.key, have, most.most}
		return false
	})
	return err
}

// Reach is how near a start comes to each bound: of the parts that a bound limits the largest norm over what
// it may be, 1 at the bound and 0 where it limits none. An honest coordinator's stay at 0.95 or below.
func Reach(l *model.Layout, rank int, values []float32, b wire.Bounds) (shares wire.Bounds) {
	of := map[string]*float64{}
	for _, part := range PartsOf(&shares) {
		of[part.Key] = part.Most
	}
	eachPart(l, rank, values, b, func(_ model.Span, _ []float32, have float64, most limit) bool {
		*of[most.key] = max(*of[most.key], have/most.most)
		return true
	})
	return shares
}

// ProjectStart scales values beyond the bounds back to just within them, and reports whether there were any. It
// acts on released values, so it costs no privacy.
func ProjectStart(l *model.Layout, rank int, values []float32, b wire.Bounds) (moved bool) {
	for _, part := range PartsOf(&b) {
		*part.Most *= projected
	}
	over(l, rank, values, b, func(_ model.Span, part []float32, have float64, most limit) bool {
		moved = true
		for i := range part {
			part[i] = float32(float64(part[i]) * (most.most * (1 - 1e-6) / have))
		}
		return true
	})
	return moved
}
