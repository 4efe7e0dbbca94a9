package program

import (
	"bytes"
	"context"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm"
)

// TestStep: the program of a rank has the tensors of its assignment, is
// the same every time and whatever the job is called, and differs by rank and host only.
func TestStep(t *testing.T) {
	j := job.Default()
	j.Name, j.Labels = "tiny", []string{"a", "b"}
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Training = job.Training{Steps: 1, Batch: 2, Optimizer: "adamw", LearningRate: 0.1}
	base := tiny.Base(t, 8, 1, 8)
	layout, err := model.NewLayout(base.Config, model.Method{RMax: 3, Alpha: 4}, 2)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, rank := range []int{0, 1, 3} {
		for _, host := range Hosts {
			spec := Spec{Job: j, Base: base, Rank: rank, Host: host}
			code, err := Step(spec)
			if err != nil {
				t.Fatal(err)
			}
			named := spec
			named.Job.Name = "what <b>people</b> call jobs, \u65e5\u672c"
			again, err := Step(named)
			if err != nil || !bytes.Equal(code, again) {
				t.Fatalf("rank %d for %s differs when compiled again: %v", rank, host, err)
			}
			if seen[string(code)] {
				t.Errorf("rank %d for %s equals another program", rank, host)
			}
			seen[string(code)] = true
			p, err := wasm.Load(context.Background(), code, wasm.Config{})
			if err != nil {
				t.Fatal(err)
			}
			m := p.Manifest()
			state := map[string]int{}
			for _, s := range m.State {
				state[s.Name] = s.Len()
			}
			for _, span := range layout.Spans(rank) {
				if span.Len > 0 && state[span.Name] != span.Len {
					t.Errorf("rank %d: state %q has %d values, the layout %d", rank, span.Name, state[span.Name], span.Len)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
