package program

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// With training.memory a step computes as little again as fits: less memory makes another program, which takes no more than
// that, and too little is an error that says what to give.
func TestStepWithinMemory(t *testing.T) {
	base, j, _, _ := causal(t, "llama")
	j.Training.Batch, j.Training.LearningRate = 2048, 0.1
	pages := func(mib int) (uint32, uint64) {
		t.Helper()
		j.Training.Memory = mib
		code, err := Step(Spec{Job: j, Base: base, Rank: 2, Host: Hosts[0]})
		if err != nil {
			t.Fatalf("within %d MiB: %v", mib, err)
		}
		report, err := wasm.Verify(code, wasm.Limits{MemoryPages: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		if got := int(report.MemoryPages); mib > 0 && got > mib*16 {
			t.Errorf("within %d MiB: the program takes %d", mib, got/16)
		}
		return report.MemoryPages, report.Manifest.FLOPs
	}
	most, least := pages(training.MaxMemory)
	less, more := pages(int(most-1) / 16)
	if less >= most || more <= least {
		t.Errorf("%d pages and %d operations behind %d and %d", less, more, most, least)
	}
	j.Training.Memory = int(less-1) / 16
	_, err := Step(Spec{Job: j, Base: base, Rank: 2, Host: Hosts[0]})
	if !errors.Is(err, compiler.ErrMemory) || !strings.Contains(err.Error(), "training.memory") {
		t.Errorf("within too little: %v", err)
	}
	j.Training.Memory = 0
	recipe, err := Recipe(j)
	if err != nil || strings.Contains(string(recipe), "Memory") {
		t.Errorf("a recipe of a job without: %s, %v", recipe, err)
	}
	j.Training.Memory = training.MaxMemory
	if recipe, err = Recipe(j); err != nil {
		t.Fatal(err)
	}
	code, err := Step(Spec{Job: j, Base: base, Rank: 2, Host: Hosts[0]})
	if err != nil {
		t.Fatal(err)
	}
	made, err := Remake(t.Context(), 1e13, j.Name, nil, recipe, base, 2, Hosts[0])
	if err != nil || string(made) != string(code) {
		t.Errorf("made again by its recipe it is another program: %v", err)
	}
	var told job.Training
	if told, err = Trains(recipe); err != nil || told.Memory != training.MaxMemory {
		t.Errorf("its recipe says %d MiB, %v", told.Memory, err)
	}
}
