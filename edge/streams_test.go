package edge

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// ordering is a trainer whose update is always the same, and which notes the labels
// in the order in which it saw them.
type ordering struct{ seen []int32 }

func (o *ordering) Train(_ context.Context, t Task) ([]float32, error) {
	for b, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		o.seen = append(o.seen, b.Int32(task.Labels)...)
	}
	return sloped(len(t.Start)), nil
}

func (*ordering) Close() error { return nil }

// sloped is between the lattice's points almost everywhere.
func sloped(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1e-4 * float32(i%97+1)
	}
	return x
}

// foxes are n examples, each with a label of its own, and what contributions over them need.
func foxes(t *testing.T, n int) (*model.Layout, *Data, *quant.Lattice) {
	t.Helper()
	base, set := tinyBase(t), &dataset.Set{}
	for i := range n {
		set.Labels = append(set.Labels, fmt.Sprint(i))
		set.Examples = append(set.Examples, dataset.Example{Text: "fox", Label: i})
	}
	layout, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1}, n)
	ok(t, err)
	k, err := task.New(base, layout, 8)
	ok(t, err)
	data, err := NewData(set, k, 0, 0)
	ok(t, err)
	scheme, err := quant.Lookup("nf4")
	ok(t, err)
	lattice, err := quant.NewLattice(scheme, layout.Size(0), 1, [32]byte{1})
	ok(t, err)
	return layout, data, lattice
}

// What a seeded device rounds and shuffles with is its stream for that and that round's:
// of two rounds, or of two devices, with the same data neither is the same. Which streams
// are apart says TestStreamsAreApart; here each is seen to be used for its purpose.
func TestSeededContributionsUseTheirStreams(t *testing.T) {
	layout, data, lattice := foxes(t, 24)
	var sums [][]int32
	var orders [][]int32
	for device := range 2 {
		seed, _ := Reproducible([]byte("a fleet's seed, long enough"), device)
		for _, round := range []uint64{1, 2, 7} {
			trainer := new(ordering)
			sum, err := Contribute(t.Context(), trainer, data, Contribution{
				Round: round, Lattice: lattice, Seed: seed,
				Task: Task{Layout: layout, Start: make([]float32, layout.Size(0)), Spec: training.Spec{Steps: 24, Batch: 1}},
			})
			ok(t, err)
			want, err := lattice.Encode(sloped(layout.Size(0)), random(seed, forRounding, round))
			ok(t, err)
			if !slices.Equal(sum, want) {
				t.Errorf("device %d, round %d: not rounded with the stream for it", device, round)
			}
			var order []int32
			for b, err := range drawn(t, data.units[0].data, random(seed, forBatches, round), 24, 1) {
				ok(t, err)
				order = append(order, b.Int32(task.Labels)...)
			}
			if !slices.Equal(trainer.seen, order) {
				t.Errorf("device %d, round %d: not shuffled with the stream for it", device, round)
			}
			for i := range sums {
				if slices.Equal(sum, sums[i]) || slices.Equal(order, orders[i]) {
					t.Errorf("device %d, round %d: as the %d-th contribution before", device, round, i+1)
				}
			}
			sums, orders = append(sums, sum), append(orders, order)
		}
	}
}
