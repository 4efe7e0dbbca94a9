package program

import (
	"encoding/hex"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A step that learns transcripts is compiled for laptops and for browsers, does what GoMLX does
// on the host, and the same to the bit in both shapes: in V8, too, where there is a node.
func TestTranscribePrograms(t *testing.T) {
	base, err := model.LoadBaseDir(filepath.Join("..", "..", "model", "nn", "testdata", "ctc", "hubert"))
	if err != nil {
		t.Fatal(err)
	}
	j := job.Default()
	j.Name, j.Task, j.Labels = "transcripts", model.TaskTranscribe.String(), nil
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 2, Alpha: 4, Sequence: 11}
	j.Training = job.Training{Steps: 1, Batch: 4, Optimizer: "sgd", LearningRate: 0.1}
	l, err := model.NewLayout(base.Config, j.Method(), 0)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := task.Columns(l, j.Adapter.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	b := task.NewBatch(columns, 4)
	samples, keep, labels, weights := b.Float32(task.Samples), b.Float32(task.Keep), b.Int32(task.Labels), b.Float32(task.Weights)
	for i := range samples {
		samples[i] = float32(math.Sin(float64(i) / 7))
	}
	for row, text := range [][]int32{{5, 6, 6, 4}, {8}, {7, 7, 7}} { // the fourth row only fills up
		weights[row] = 1
		copy(labels[row*len(labels)/4:], text)
		for f := range 11 - 2*row {
			keep[row*11+f] = 1
		}
	}
	start := model.NewAdapter(l, 1).Slice(2)
	for i := range start {
		start[i] += float32(math.Sin(float64(i))) / 9
	}
	host, err := nn.NewTrainer(stepOf(j, base, 0, 2), base)
	if err != nil {
		t.Fatal(err)
	}
	want, losses, err := host.Train(t.Context(), start, []task.Batch{b}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var shapes [][]float32
	for _, shape := range []string{compiler.HostWazero, compiler.HostV8} {
		code, err := Step(Spec{Job: j, Base: base, Rank: 2, Host: shape})
		if err != nil {
			t.Fatal(err)
		}
		got, loss := runStep(t, code, base, l, 2, b, start)
		if d := math.Abs(float64(loss - losses[0])); !(d < 1e-5*float64(losses[0])) {
			t.Errorf("%s: loss %v, GoMLX's %v", shape, loss, losses[0])
		}
		for i := range got {
			if d := math.Abs(float64(got[i] - want[i])); !(d < 1e-5) {
				t.Errorf("%s: value %d moves by %v, GoMLX's by %v", shape, i, got[i], want[i])
				break
			}
		}
		shapes = append(shapes, got)
		if node, err := exec.LookPath("node"); err == nil && shape == compiler.HostV8 {
			inNode(t, node, code, base, l, b, start)
		}
	}
	if !slices.Equal(shapes[0], shapes[1]) {
		t.Error("the two shapes differ")
	}
	j.Adapter.Sequence = 3001
	if _, err := Step(Spec{Job: j, Base: base, Rank: 2, Host: compiler.HostWazero}); err == nil || !strings.Contains(err.Error(), "3000") {
		t.Errorf("a recursion over %d frames: %v", j.Adapter.Sequence, err)
	}
}

// inNode runs a step of a program in V8 and holds its state to this process's.
func inNode(t *testing.T, node string, code []byte, base *model.Base, l *model.Layout, b task.Batch, start []float32) {
	t.Helper()
	p, err := wasm.Load(t.Context(), code, wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	in, err := p.NewInstance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(t, in, base, l, 2, b, start)
	dir := t.TempDir()
	program, inputs := filepath.Join(dir, "p.wasm"), filepath.Join(dir, "in.bin")
	f, err := os.Create(inputs)
	must(err)
	must(in.Snapshot(f))
	must(f.Close())
	must(os.WriteFile(program, code, 0o600))
	out, err := exec.CommandContext(t.Context(), node, filepath.Join("..", "..", "lab", "bench", "wasm", "run_program.mjs"), program, inputs, "--json", "--steps", "2").Output()
	must(err)
	for range 2 {
		must(in.Step(t.Context()))
	}
	sum, err := in.StateSHA256()
	must(err)
	if want := hex.EncodeToString(sum[:]); !strings.Contains(string(out), want) {
		t.Errorf("the state in V8 is another than %s: %s", want, out)
	}
}
