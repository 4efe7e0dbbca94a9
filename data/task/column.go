package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/model"
)

// Type is the type of a column's values.
type Type string

const (
	I32 Type = "i32"
	F32 Type = "f32"
)

// Names of columns that several tasks have.
const (
	Tokens  = "tokens"  // i32 [S]; the base's padding id is masked
	Labels  = "labels"  // i32
	Weights = "weights" // f32; 0 leaves out
)

// A Column is one input of a training step, of one example.
type Column struct {
	Name  string
	Type  Type
	Shape []int // of one example, the batch left out; nil: a number
	Limit int   // I32: values are 0..Limit-1; 0: any
}

// Inputs lists the columns that the model's output depends on: all but those that it is compared
// with.
func Inputs(columns []Column) []Column {
	return slices.DeleteFunc(slices.Clone(columns), func(c Column) bool { return c.Name == Labels || c.Name == Weights })
}

// Tried lists the inputs of the pass with which a finished model is tried. For a model that writes
// a text these are what is written so far and the place whose next token is wanted.
func Tried(l *model.Layout, columns []Column) []Column {
	in := Inputs(columns)
	if !l.Method.Task.Generative() {
		return in
	}
	at := Column{Name: Places, Type: I32, Shape: []int{1}}
	for i := range in {
		switch in[i].Name {
		case Places:
			at.Limit = in[i].Limit
			in[i] = at
			return in
		case DecoderTokens:
			at.Limit = in[i].Shape[0]
		}
	}
	return append(in, at)
}

// Size is the number of values of one example.
func (c Column) Size() int {
	n := 1
	for _, d := range c.Shape {
		n *= d
	}
	return n
}

// RowBytes is the memory of one example in all columns, in bytes.
func RowBytes(columns []Column) float64 {
	var n float64
	for _, c := range columns {
		size := 4.0
		for _, d := range c.Shape {
			size *= float64(d) // which may be beyond any int
		}
		n += size
	}
	return n
}

// Values are the values of a column, rows one after another; only the slice of
// the column's type is set.
type Values struct {
	Column
	I32 []int32
	F32 []float32
}

// A Batch holds rows of every column, in the order of the task's columns. Rows
// that only fill it up are zero in every column.
type Batch []Values

// NewBatch is a batch of zeros.
func NewBatch(columns []Column, rows int) Batch {
	b := make(Batch, len(columns))
	for i, c := range columns {
		b[i].Column = c
		if c.Type == F32 {
			b[i].F32 = make([]float32, rows*c.Size())
		} else {
			b[i].I32 = make([]int32, rows*c.Size())
		}
	}
	return b
}

// Int32 returns the values of the named column, nil if there is none of this type.
func (b Batch) Int32(name string) []int32 {
	v, _ := b.Column(name)
	return v.I32
}

// Float32 returns the values of the named column, nil if there is none of this type.
func (b Batch) Float32(name string) []float32 {
	v, _ := b.Column(name)
	return v.F32
}

// Column returns the column of that name.
func (b Batch) Column(name string) (Values, bool) {
	for _, v := range b {
		if v.Name == name {
			return v, true
		}
	}
	return Values{}, false
}

// Bound returns b's values for the given columns, in their order, each checked against its column
// (see Values.Check). b may hold other columns; the shapes and limits that it states itself are
// ignored.
func (b Batch) Bound(columns []Column, rows int) (Batch, error) {
	out := make(Batch, 0, len(columns))
	for _, c := range columns {
		v, ok := b.Column(c.Name)
		if !ok {
			return nil, fmt.Errorf("task: batch has no %s", c.Name)
		}
		v.Column = c
		if err := v.Check(rows); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Copy copies a row of another batch of the same columns into row to.
func (b Batch) Copy(to int, from Batch, row int) {
	for i, c := range b {
		n := c.Size()
		if c.Type == F32 {
			copy(c.F32[to*n:(to+1)*n], from[i].F32[row*n:(row+1)*n])
		} else {
			copy(c.I32[to*n:(to+1)*n], from[i].I32[row*n:(row+1)*n])
		}
	}
}

// Pick returns a batch of the given rows, in that order, which shares no memory.
func (b Batch) Pick(rows []int) Batch {
	columns := make([]Column, len(b))
	for i, v := range b {
		columns[i] = v.Column
	}
	out := NewBatch(columns, len(rows))
	for to, row := range rows {
		out.Copy(to, b, row)
	}
	return out
}

// Cut returns the rows from..to-1, which share the batch's memory.
func (b Batch) Cut(from, to int) Batch {
	out := slices.Clone(b)
	for i, v := range out {
		n := v.Size()
		if v.Type == F32 {
			out[i].F32 = v.F32[from*n : to*n]
		} else {
			out[i].I32 = v.I32[from*n : to*n]
		}
	}
	return out
}

// Clear sets all rows from the given one on to zero.
func (b Batch) Clear(from int) {
	for _, c := range b {
		if c.Type == F32 {
			clear(c.F32[from*c.Size():])
		} else {
			clear(c.I32[from*c.Size():])
		}
	}
}

// Clone returns a copy that shares no memory.
func (b Batch) Clone() Batch {
	out := slices.Clone(b)
	for i, c := range out {
		out[i].I32, out[i].F32 = slices.Clone(c.I32), slices.Clone(c.F32)
	}
	return out
}

// Check checks rows of values against the column: their number and their range. Numbers must be
// finite, and weights not negative.
func (v Values) Check(rows int) error {
	have, want := len(v.I32), rows*v.Size()
	if v.Type == F32 {
		have = len(v.F32)
	}
	if have != want {
		return fmt.Errorf("task: %s: %d values, want %d", v.Name, have, want)
	}
	for i, x := range v.I32 {
		if v.Limit > 0 && (x < 0 || int(x) >= v.Limit) {
			return fmt.Errorf("task: %s: %d at %d, want 0..%d", v.Name, x, i, v.Limit-1)
		}
	}
	for i, x := range v.F32 {
		if d := float64(x); math.IsNaN(d) || math.IsInf(d, 0) || v.Name == Weights && x < 0 {
			return fmt.Errorf("task: %s: %v at %d, want a finite number, and no weight below 0", v.Name, x, i)
		}
	}
	return nil
}
