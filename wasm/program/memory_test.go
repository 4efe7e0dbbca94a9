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
		report, err := wasm.Verify(code, wasm.Limits{MemoryPages: wasm.MaxMemoryPages})
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
	if told, err = TrainingOf(recipe); err != nil || told.Memory != training.MaxMemory {
		t.Errorf("its recipe says %d MiB, %v", told.Memory, err)
	}
}

// Laptops and browsers set aside unlike memory for packing, and compute the same again all the same: here the one would
// keep all activations within the limit, and the other would not.
func TestHostsChooseAlikeWithinMemory(t *testing.T) {
	base, j, _, _ := causal(t, "llama")
	j.Training.Batch, j.Training.LearningRate, j.Training.Memory = 1916, 0.1, 65
	var work []uint64
	for _, host := range Hosts {
		code, err := Step(Spec{Job: j, Base: base, Rank: 2, Host: host})
		if err != nil {
			t.Fatal(err)
		}
		report, err := wasm.Verify(code, wasm.Limits{MemoryPages: 65 << 4})
		if err != nil {
			t.Fatal(err)
		}
		work = append(work, report.Manifest.FLOPs)
	}
	if work[0] != work[1] {
		t.Errorf("their steps are of %d operations", work)
	}
}

// A recipe with a memory that no job may have is read by no device: it says how often the compiler may try.
func TestRecipeOfAnotherMemory(t *testing.T) {
	base, j, _, _ := causal(t, "llama")
	for _, mib := range []int{-1, 63, 2049, 1 << 44} {
		j.Training.Memory = mib
		recipe, err := Recipe(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Remake(t.Context(), 1e13, j.Name, nil, recipe, base, 2, Hosts[0]); err == nil || !strings.Contains(err.Error(), "training.memory is") {
			t.Errorf("%d: %v", mib, err)
		}
	}
}
