package optimizer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/starling-fl/starling/job"
)

// TestAverage: of five rounds the last three are averaged, and only then is there a mean;
// a copy of the state goes on to the same.
func TestAverage(t *testing.T) {
	a := NewAverage(job.Server{Average: 3}, 5, 2)
	add := func(a *Average, round uint64, x ...float32) {
		t.Helper()
		if err := a.Add(round, x); err != nil {
			t.Fatal(err)
		}
	}
	add(a, 1, 100, 100)
	add(a, 2, 50, -50)
	if a.Mean() != nil || a.State() != nil {
		t.Fatalf("before the last three rounds the mean is %v", a.Mean())
	}
	add(a, 3, 1, 10)
	if a.Mean() != nil {
		t.Fatalf("of one round the mean is %v", a.Mean())
	}
	add(a, 4, 2, 30)
	near(t, "of two", a.Mean(), 1.5, 20)
	b := NewAverage(job.Server{Average: 3}, 5, 2)
	if err := b.Restore(a.State()); err != nil {
		t.Fatal(err)
	}
	add(a, 5, 6, 20)
	add(b, 5, 6, 20)
	near(t, "of three", a.Mean(), 3, 20)
	if !bytes.Equal(a.State(), b.State()) {
		t.Error("a restored mean goes on to another")
	}
	// A job that was given more rounds: the window begins anew.
	c := NewAverage(job.Server{Average: 2}, 7, 2)
	if err := c.Restore(a.State()); err != nil {
		t.Fatal(err)
	}
	add(c, 5, 7, 7)
	if c.Mean() != nil {
		t.Errorf("five of seven rounds, of which two are averaged: %v", c.Mean())
	}
	add(c, 6, 1, 1)
	add(c, 7, 2, 4)
	near(t, "of the last two", c.Mean(), 1.5, 2.5)
}

// TestNoAverage: a job that asks for none keeps nothing, in its last round neither.
func TestNoAverage(t *testing.T) {
	for _, n := range []int{0, 1} {
		a := NewAverage(job.Server{Average: n}, 2, 1)
		for round := range uint64(2) {
			if err := a.Add(round+1, []float32{1}); err != nil {
				t.Fatal(err)
			}
		}
		if a.Mean() != nil || len(a.State()) != 0 {
			t.Errorf("average %d keeps %v", n, a.State())
		}
	}
}

func TestAverageRefuses(t *testing.T) {
	a := NewAverage(job.Server{Average: 3}, 5, 2)
	for name, b := range map[string][]byte{"short": {1, 0, 0}, "long": make([]byte, 16), "of no rounds": make([]byte, 12)} {
		if err := a.Restore(b); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Add(4, []float32{1}); err == nil {
		t.Error("one parameter in a mean of two")
	}
}
