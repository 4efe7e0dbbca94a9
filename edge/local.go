package edge

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/uniform"
	"github.com/starling-fl/starling/model/trainer"
)

// Data is a device's examples, encoded for a job's task and divided into the units
// that the job protects. It is immutable and safe for concurrent use.
type Data struct {
	units []unit
	rate  float64 // of each provider's coin; 0: the device is the unit
}

// unit is what the job protects: this device with all its data, or one
// provider in it. It is immutable.
type unit struct {
	name string // "" for the device
	data *local

	groups int      // that data is in; 0 and 1: none
	group  []int    // of each row
	parts  []*local // data in groups; nil: it has none
}

// NewData encodes a set for a job's task and divides it. providers is the most that a device may hold where the job protects those,
// each with a coin of the rate; 0: the device with all its data is the unit.
//
// More providers than the job takes are refused: leaving some out silently would make the choice
// depend on the others, and no epsilon would hold.
func NewData(set *dataset.Set, t task.Task, providers int, rate float64) (*Data, error) {
	return newData(set, t, division{providers: providers, rate: rate}, nil)
}

// division is how a job has a device's examples divided.
type division struct {
	providers int // most that a device may hold; 0: the device is the unit
	rate      float64
	groups    int    // of each unit; 0 and 1: none
	seed      []byte // that groups are drawn by; empty: crypto/rand
}

// newData is NewData, which calls pause between two examples where that is not nil, and ends
// with its error.
func newData(set *dataset.Set, t task.Task, by division, pause func() error) (*Data, error) {
	providers, rate := by.providers, by.rate
	rnd := random(by.seed, forGroups, 0)
	if providers == 0 {
		all, err := encode(set, t, mostEncoded, pause)
		if err != nil {
			return nil, err
		}
		one := unit{data: all}
		err = one.divide(set, by, rnd, pause)
		return &Data{units: []unit{one}}, err
	}
	names, parts, err := divide(set, providers)
	if err != nil {
		return nil, err
	}
	d := &Data{units: make([]unit, len(names)), rate: rate}
	for i := range d.units {
		part, err := encode(parts[i], t, mostEncoded/float64(len(names)), pause)
		if err != nil {
			return nil, err
		}
		d.units[i] = unit{name: names[i], data: part}
		if err := d.units[i].divide(parts[i], by, rnd, pause); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// divide makes a set of each provider, of whom there may be most.
func divide(set *dataset.Set, most int) (names []string, parts []*dataset.Set, err error) {
	if names, parts, err = set.Groups(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	if len(names) > most {
		return nil, nil, fmt.Errorf("%w: %d providers, the job takes at most %d a device (providers.max): divide them over several devices or leave some out",
			ErrData, len(names), most)
	}
	return names, parts, nil
}

// Columns are the columns of the task that the data is encoded for.
func (d *Data) Columns() []task.Column {
	if len(d.units) == 0 {
		return nil
	}
	return d.units[0].data.columns
}

// providers tells whether they are the units.
func (d *Data) providers() bool { return d.rate != 0 }

// draw flips each provider's coin for a round. The device itself is always in:
// its coin was flipped by the coordinator.
func (d *Data) draw(rnd io.Reader) ([]unit, error) {
	if !d.providers() {
		return d.units, nil
	}
	names := make([][]byte, len(d.units))
	for i, u := range d.units {
		names[i] = []byte(u.name)
	}
	in, _, err := dp.DrawCohort(names, d.rate, rnd)
	if err != nil {
		return nil, err
	}
	var drawn []unit
	for i, u := range d.units {
		if in[i] {
			drawn = append(drawn, u)
		}
	}
	return drawn, nil
}

// local is a unit's data, encoded for the job. It is immutable but for features.
type local struct {
	columns []task.Column
	n       int        // rows
	held    []int      // of them that are scored and not trained on, ascending
	rest    []int      // of them that are other groups', ascending
	of      []int      // whose part each row is; nil: of an example each
	rows    task.Batch // one an example; nil where they would take too much memory

	features *trainer.Features // of recordings, from round to round

	task     task.Task         // where rows is nil: of examples, each encoded when it is asked for
	drawer   task.Drawer       // the same, which draws each anew then; nil: rows are always alike
	examples []dataset.Example // that fit a row each
}

// mostEncoded is what all rows of a unit may take in memory, in bytes, and what is kept of
// recordings' features as much again. How long a row is
// decides who makes base and job: an image of 4096 x 4096 has 200 MB.
const mostEncoded = 256 << 20

// encode writes examples into the task's columns, one that is longer than a row in
// several; where all of them would take more than most bytes, one after another, to see
// that each can be written.
func encode(set *dataset.Set, t task.Task, most float64, pause func() error) (*local, error) {
	at := func(line int, err error) error {
		return fmt.Errorf("%w: %w", ErrData, &dataset.LineError{File: set.Name, Line: line, Err: err})
	}
	rows, of, err := task.Rows(t, set.Examples)
	if bad := new(dataset.LineError); errors.As(err, &bad) {
		return nil, at(bad.Line, bad.Err)
	}
	n := len(rows)
	l := &local{columns: t.Columns(), n: n, of: of, features: trainer.NewFeatures(most)}
	l.drawer, _ = t.(task.Drawer)
	keep := l.drawer == nil && task.RowBytes(l.columns)*float64(n) <= most
	into := task.NewBatch(l.columns, 1)
	if keep {
		l.rows = task.NewBatch(l.columns, n)
		into = l.rows
	} else {
		l.task, l.examples = t, rows
	}
	for i := range rows {
		if pause != nil {
			if err := pause(); err != nil {
				return nil, err
			}
		}
		row := i
		if !keep {
			row = 0
			into.Clear(0)
		}
		if err := t.Encode(&rows[i], into, row); err != nil {
			return nil, at(rows[i].Line, err)
		}
	}
	return l, nil
}

// trained is how many rows are trained on.
func (l *local) trained() int { return l.n - len(l.held) - len(l.rest) }

// learnt are the rows that are trained on.
func (l *local) learnt() []int {
	rows, held, rest := make([]int, 0, l.trained()), l.held, l.rest
	for i := range l.n {
		switch {
		case len(held) > 0 && held[0] == i:
			held = held[1:]
		case len(rest) > 0 && rest[0] == i:
			rest = rest[1:]
		default:
			rows = append(rows, i)
		}
	}
	return rows
}

// order is a random one of the rows that are trained on, drawn from the device's own secret.
func (l *local) order(rnd io.Reader) ([]int, error) {
	if l.n == 0 {
		return nil, fmt.Errorf("%w: no examples", ErrData)
	}
	order := l.learnt()
	return order, uniform.Shuffle(rnd, order)
}

// distinct is how many examples stand in so many rows of an order: a long example's rows
// are one, however often and in how many parts it is taken.
func (l *local) distinct(order []int, rows int) int {
	order = order[:min(rows, len(order))]
	if l.of == nil {
		return len(order)
	}
	seen := map[int]struct{}{}
	for _, row := range order {
		seen[l.of[row]] = struct{}{}
	}
	return len(seen)
}

// batches draws steps batches, each when it is asked for: the examples in the order
// given, and in a new one when all were used. A batch never spans two
// orders, so that no example stands in it twice; rows left over have weight 0.
// All batches share their memory. What the task draws anew it draws here, from rnd: the
// device's own secret (see Contribution).
func (l *local) batches(rnd io.Reader, order []int, steps, size int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		n := len(order)
		b := task.NewBatch(l.columns, size)
		at := 0
		for range steps {
			if at >= n {
				if err := uniform.Shuffle(rnd, order); err != nil {
					yield(nil, err)
					return
				}
				at = 0
			}
			rows, err := l.fill(rnd, b, size, order[at:])
			at += rows
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// fill writes examples into a batch and returns how many there were room for.
func (l *local) fill(rnd io.Reader, b Batch, size int, examples []int) (rows int, err error) {
	rows = min(size, len(examples))
	if l.rows == nil {
		b.Clear(0)
		for row, i := range examples[:rows] {
			if l.drawer != nil {
				err = l.drawer.Draw(rnd, &l.examples[i], b, row)
			} else {
				err = l.task.Encode(&l.examples[i], b, row)
			}
			if err != nil { // it could, in encode
				return rows, fmt.Errorf("%w: line %d: %w", ErrData, l.examples[i].Line, err)
			}
		}
		return rows, nil
	}
	for row, i := range examples[:rows] {
		b.Copy(row, l.rows, i)
	}
	b.Clear(rows)
	return rows, nil
}
