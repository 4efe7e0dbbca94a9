package edge

import (
	"errors"
	"io"
	"iter"
	"math"
	"reflect"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
)

// ruled is a task whose encoding writes some of a row, as tags do, and counts.
type ruled struct {
	columns []task.Column
	encoded int
}

func (r *ruled) Columns() []task.Column { return r.columns }

func (r *ruled) Encode(e *dataset.Example, b task.Batch, row int) error {
	r.encoded++
	if e.Text == "" {
		return errors.New("nothing to read")
	}
	n := r.columns[0].Size()
	copy(b[0].I32[row*n:(row+1)*n], []int32{int32(len(e.Text)), int32(e.Label)}[:min(n, 1+len(e.Text)%2)])
	b[1].F32[row] = 1
	return nil
}

// A job whose rows are long takes the memory of a batch, not of all of a device's
// examples: rows beyond a limit are encoded when they are asked for, into the same
// batches.
func TestHostileLongRows(t *testing.T) {
	set := &dataset.Set{Name: "long.jsonl"}
	for i := range 11 {
		set.Examples = append(set.Examples, dataset.Example{Text: "abcdefghijklmnop"[:i+1], Label: i, Line: i + 1})
	}
	short := &ruled{columns: []task.Column{{Name: task.Tokens, Type: task.I32, Shape: []int{5}}, {Name: task.Weights, Type: task.F32}}}
	all, err := encode(set, short, math.Inf(1), nil)
	ok(t, err)
	asked, err := encode(set, short, 11*24-1, nil)
	ok(t, err)
	if all.rows == nil || asked.rows != nil {
		t.Fatalf("kept: %v, and %v of %d bytes with one less to have", all.rows != nil, asked.rows != nil, 11*24)
	}
	batches := func(l *local) (got []task.Batch) {
		for b, err := range drawn(t, l, random([]byte("any seed will do"), forBatches, 1), 7, 4) {
			ok(t, err)
			got = append(got, b.Clone())
		}
		return got
	}
	if !reflect.DeepEqual(batches(all), batches(asked)) {
		t.Error("other batches")
	}
	set.Examples[10].Text = ""
	for _, most := range []float64{math.Inf(1), 1} { // a line that cannot be used shows before the device joins
		if _, err := encode(set, short, most, nil); !errors.Is(err, ErrData) {
			t.Errorf("%v", err)
		}
	}

	// A coordinator's: 12 MiB each, then 200.
	long := &ruled{columns: []task.Column{{Name: task.Patches, Type: task.I32, Shape: []int{1024, 1024 * 3}}, {Name: task.Weights, Type: task.F32}}}
	p, beyond := DefaultPolicy(), new(PolicyError)
	if err := p.checkBatch(long.columns, 8); err != nil {
		t.Errorf("an image of 1024 x 1024: %v", err)
	}
	if err := p.checkBatch(long.columns, 100); !errors.Is(err, ErrPolicy) || !errors.As(err, &beyond) || beyond.Key != "memory" {
		t.Errorf("a hundred of them in a step: %v", err)
	}
	long.columns[0].Shape[0] *= 16
	if err := p.checkBatch(long.columns, 1); !errors.Is(err, ErrPolicy) {
		t.Errorf("one of 4096 x 4096 in a step, and each of the device's to be encoded: %v", err)
	}
	for _, n := range []int{1 << 40, math.MaxInt} { // no overflow lets it through
		huge := []task.Column{{Shape: []int{n, n}}}
		if err := p.checkBatch(huge, math.MaxInt); !errors.Is(err, ErrPolicy) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// drawn are the batches of a unit's rows in an order that is drawn as Contribute draws it.
func drawn(t *testing.T, l *local, rnd io.Reader, steps, size int) iter.Seq2[Batch, error] {
	t.Helper()
	order, err := l.order(rnd)
	ok(t, err)
	return l.batches(rnd, order, steps, size)
}

// What cannot be encoded any more ends the round's training, not the program.
func TestRowsThatFailLater(t *testing.T) {
	set := &dataset.Set{Examples: []dataset.Example{{Text: "a"}, {Text: "b"}}}
	kind := &ruled{columns: []task.Column{{Name: task.Tokens, Type: task.I32, Shape: []int{2}}, {Name: task.Weights, Type: task.F32}}}
	l, err := encode(set, kind, 1, nil)
	ok(t, err)
	l.examples[0].Text, l.examples[1].Text = "", ""
	failed := false
	for _, err := range drawn(t, l, random([]byte("any seed will do"), forBatches, 1), 3, 1) {
		failed = failed || errors.Is(err, ErrData)
	}
	if !failed {
		t.Error("no error")
	}
}
