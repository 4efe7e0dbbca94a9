package outcome

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

func TestReportFits(t *testing.T) {
	head := 0.7468
	r := Report{Task: "invoices", RankAccuracy: map[string]float64{"8": 0.8}, RankMacroF1: map[string]float64{"8": 0.79},
		Validation: map[string]float64{"7": 0.7, "8": 0.71}, ranks: []int{7, 8}, BestRank: 8, HeadOnly: &head, majority: math.Pi / 20,
		Simulated: strings.Repeat("a long guarantee ", 10), Delivered: "short", BytesUp: 7900, BytesOnceDown: 2_000_000, Checkpoint: "run/checkpoint"}
	var table strings.Builder
	r.printAccuracy(&table, 60)
	r.printPrivacy(&table, 60)
	for line := range strings.Lines(table.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 60 {
			t.Errorf("%d columns:\n%s", n, table.String())
		}
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"adapter at rank 7          –        –     70.0 %\n", "adapter at rank 8     80.0 %   79.0 %     71.0 % chosen\n",
		"Once, all devices together: 0 B up, 2.0 MB down", "--test-every-rank"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Refer says whose texts the linear reference was trained on, or that the task has none.
func TestLinearReference(t *testing.T) {
	base := tiny.Base(t, 16, 2, 16)
	set := func(n int) *dataset.Set {
		s := &dataset.Set{Labels: []string{"a", "b"}}
		for i := range n {
			s.Examples = append(s.Examples, dataset.Example{Text: []string{"ape", "bear"}[i%2], Label: i % 2})
		}
		return s
	}
	for want, c := range map[string]struct {
		task model.TaskKind
		of   Trained
	}{
		"the devices' 8 texts in one place":    {model.TaskClassify, OnDevices},
		"8 validation examples, and on no":     {model.TaskClassify, OnValidation},
		"is no linear reference for this task": {model.TaskTag, OnDevices},
	} {
		l, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: c.task}, 2)
		if err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := r.Refer(t.Context(), l, c.of, set(8), set(4)); err != nil || (r.Linear != nil) != (c.task == model.TaskClassify) {
			t.Errorf("%s: %+v, %v", c.task, r.Linear, err)
		}
		var table strings.Builder
		r.printAccuracy(&table, 200)
		if out := table.String(); !strings.Contains(out, want) || (r.Linear != nil) != strings.Contains(out, "linear over words    100.0 %  100.0 %") {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestDeliveredMeaning: a number that no reader can place is called what it is,
// and the simulated one is not called so twice.
func TestDeliveredMeaning(t *testing.T) {
	for epsilon, protects := range map[float64]bool{1.2: true, 20: true, 5.7e6: false} {
		r := Report{Simulated: "SIMULATED epsilon 2 at delta 1e-6", Delivered: "epsilon X", EpsilonDelivered: &epsilon}
		var b strings.Builder
		r.printPrivacy(&b, 100)
		if out := b.String(); strings.Contains(out, "no protection at this size") == protects || strings.Contains(out, "SIMULATED") ||
			!strings.Contains(out, "Simulated  epsilon 2") {
			t.Errorf("epsilon %v:\n%s", epsilon, out)
		}
	}
}
