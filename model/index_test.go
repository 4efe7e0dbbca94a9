package model

import (
	"slices"
	"testing"
)

// TestIndex: at every rank the index finds the values of the slice in the
// largest one, and the adapter's own cut agrees with it.
func TestIndex(t *testing.T) {
	l := tinyLayout(t)
	a := NewAdapter(l, 3)
	full := make([]float32, l.Size(l.Method.RMax))
	for i := range full {
		full[i] = float32(i)
	}
	if err := a.SetSlice(l.Method.RMax, full); err != nil {
		t.Fatal(err)
	}
	for rank := range l.Method.RMax + 1 {
		index, err := l.Index(rank)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(index) {
			t.Errorf("rank %d: not ascending", rank)
		}
		values := a.Slice(rank)
		if len(index) != len(values) {
			t.Fatalf("rank %d: %d entries for %d values", rank, len(index), len(values))
		}
		for i, v := range values {
			if index[i] != int(v) {
				t.Fatalf("rank %d: value %d is at %d, the index says %d", rank, i, int(v), index[i])
			}
		}
	}
	for _, rank := range []int{-1, l.Method.RMax + 1} {
		if _, err := l.Index(rank); err == nil {
			t.Errorf("rank %d has an index", rank)
		}
	}
}
