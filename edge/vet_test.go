package edge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
)

// remaker makes the house's honest programs again.
func remaker(t *testing.T) Remaker {
	return func(_ context.Context, _ float64, _ string, _ []string, _ []byte, base *model.Base, rank int, forHost string) ([]byte, error) {
		if forHost != host {
			return nil, fmt.Errorf("for %s?", forHost)
		}
		return compile(t, step(base, rank, training.SGD), false), nil
	}
}

// thiefProgram is a verified program with exactly the tensors of the honest one,
// which adds the token ids to what it returns.
func thiefProgram(t *testing.T, base *model.Base, rank int) []byte {
	t.Helper()
	s := step(base, rank, training.SGD)
	var params []nn.Param
	var outputs []nn.Output
	recorded, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
		var err error
		if params, outputs, err = s.Build(g); err != nil {
			panic(err)
		}
		var ids *graph.Node
		for _, p := range params {
			if p.Name == task.Tokens {
				ids = graph.ConvertDType(p.Node, outputs[0].Node.DType())
			}
		}
		nodes := make([]*graph.Node, len(outputs))
		for i, o := range outputs {
			nodes[i] = o.Node
			if o.State != "" && ids != nil {
				nodes[i] = graph.Add(o.Node, graph.MulScalar(graph.BroadcastToDims(graph.ReduceAllSum(ids), o.Node.Shape().Dimensions...), 64))
			}
		}
		return nodes
	})
	ok(t, err)
	spec := compiler.Spec{Name: "test", Host: host}
	for _, p := range params {
		switch p.Role {
		case nn.State:
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.State})
		case nn.Frozen:
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.Frozen})
		}
	}
	for _, o := range outputs {
		spec.Outputs = append(spec.Outputs, compiler.Output{Name: o.Name, State: o.State})
	}
	program, err := compiler.CompileGraph(recorded, spec)
	ok(t, err)
	return program
}

// The thief passes every check but the one of what it computes; only a device
// that makes programs again, or whose owner has named them, does not run it.
func TestHostilePrograms(t *testing.T) {
	base := tinyBase(t)
	honest, stolen := compile(t, step(base, 2, training.SGD), false), thiefProgram(t, base, 2)
	sum := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	if _, err := trainer.Train(t.Context(), assigned(t, base, 2, stolen)); err != nil {
		t.Fatalf("the thief is found out before the defence is asked: %v", err)
	}
	for name, c := range map[string]struct {
		program  []byte
		remake   bool
		programs []string
		runs     bool
	}{
		"honest, made again":            {honest, true, nil, true},
		"thief, made again":             {stolen, true, nil, false},
		"honest, named":                 {honest, false, []string{sum(honest)}, true},
		"thief, another named":          {stolen, false, []string{sum(honest)}, false},
		"thief, another named, remade":  {stolen, true, []string{sum(honest)}, false},
		"of another version, but named": {stolen, true, []string{sum(stolen)}, true},
		"trusted":                       {stolen, false, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			tasks := make(chan Task, 1)
			cfg := h.config(&constant{value: 0.01, tasks: tasks})
			cfg.Policy.Programs = c.programs
			if c.remake {
				cfg.Remake = remaker(t)
			}
			d := h.start(cfg)
			p := h.admit(false)
			plan := h.plan(1)
			plan.Programs = []wire.Program{{Host: "another", Blob: h.blob([]byte("not this one"))}, {Host: host, Blob: h.blob(c.program)}}
			p.assign(plan)
			if c.runs {
				watchdog.Recv(t, "the training", tasks, h.sides()...)
				return
			}
			want[*wire.Turn](p)
			if err := d.wait(t); !errors.Is(err, ErrUnpromised) {
				t.Errorf("%v", err)
			}
			if len(tasks) != 0 {
				t.Error("it was run")
			}
		})
	}
}

// What is made again once is not made again in every round.
func TestProgramsAreMadeAgainOnce(t *testing.T) {
	h := newHouse(t)
	made := 0
	c := &client{cfg: Config{Policy: new(Policy), Remake: func(context.Context, float64, string, []string, []byte, *model.Base, int, string) ([]byte, error) {
		made++
		return []byte{1}, nil
	}}}
	j := &job{Job: *h.job, base: tinyBase(t)}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.vet(ctx, j, 2, host, sha256.Sum256([]byte{1})); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnpromised) {
		t.Errorf("a round that is over: %v", err)
	}
	made = 0
	for range 3 {
		ok(t, c.vet(context.Background(), j, 2, host, sha256.Sum256([]byte{1})))
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}
