package edge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// memoryEnv names the folder from which a child process trains; see
// BenchmarkPeakMemory.
const memoryEnv = "STARLING_TEST_MEMORY"

// bertSmall is the 4-layer, 512-wide encoder of BERT-small with random weights.
func bertSmall(b *testing.B, format model.Format) *model.Base {
	c := model.BERT(30522, 512, 4, 8, 512)
	state := uint32(1)
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		data := make([]float32, model.Elements(s.Shape))
		for i := range data {
			state = state*1664525 + 1013904223
			data[i] = (float32(state>>8)/(1<<24) - 0.5) * 0.07
		}
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	base, err := model.NewBase(c, tensors, tinyBase(b).Tokenizer, format)
	ok(b, err)
	return base
}

// BenchmarkPeakMemory trains two steps of BERT-small (batch 8, sequence 64,
// rank 16) in a process of its own, from the base's blob and the compiled
// program as a device gets them, and reports that process's peak resident
// memory. Linux only.
func BenchmarkPeakMemory(b *testing.B) {
	for _, format := range []model.Format{model.F32, model.NF4} {
		b.Run(string(format), func(b *testing.B) {
			base := bertSmall(b, format)
			blob, err := base.Blob()
			ok(b, err)
			spec := nn.StepSpec{Config: base.Config, Method: model.Method{RMax: 16, Alpha: 16}, Classes: 8, Rank: 16, Spec: training.Spec{Batch: 8, Optimizer: training.SGD}, Sequence: 64}
			program := compile(b, spec, format == model.NF4)
			dir := b.TempDir()
			ok(b, os.WriteFile(filepath.Join(dir, "base"), blob, 0o600))
			ok(b, os.WriteFile(filepath.Join(dir, "program"), program, 0o600))
			for b.Loop() {
				cmd := exec.CommandContext(watchdog.Context(b), os.Args[0], "-test.run=^TestMemoryChild$")
				cmd.Env = append(os.Environ(), memoryEnv+"="+dir, "GOMAXPROCS=1")
				out, err := cmd.CombinedOutput()
				if err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				_, rest, found := bytes.Cut(out, []byte("peak kB "))
				kb, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
				if !found || err != nil {
					b.Fatalf("child says %q", out)
				}
				b.ReportMetric(kb/1024, "peak-MiB")
			}
			b.ReportMetric(float64(len(blob))/1e6, "base-MB")
			b.ReportMetric(float64(len(program))/1e3, "program-kB")
			b.ReportMetric(0, "ns/op") // the child's start is not what is measured
		})
	}
}

// TestMemoryChild is BenchmarkPeakMemory's other half; by itself it does nothing.
func TestMemoryChild(t *testing.T) {
	dir := os.Getenv(memoryEnv)
	if dir == "" {
		return
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		ok(t, err)
		return data
	}
	open := func(context.Context) (*model.Base, error) { // as the client does
		defer debug.FreeOSMemory()
		file, err := os.Open(filepath.Join(dir, "base"))
		ok(t, err)
		info, err := file.Stat()
		ok(t, err)
		return model.OpenBlob(file, info.Size())
	}
	base, err := open(t.Context())
	ok(t, err)
	layout, err := model.NewLayout(base.Config, model.Method{RMax: 16, Alpha: 16}, 8)
	ok(t, err)
	columns, err := task.Columns(layout, 64)
	ok(t, err)
	batch := task.NewBatch(columns, 8)
	for i := range batch.Int32(task.Tokens) {
		batch.Int32(task.Tokens)[i] = int32(1 + i*37%30000)
	}
	for i := range 8 {
		batch.Float32(task.Weights)[i], batch.Int32(task.Labels)[i] = 1, int32(i)
	}
	two := trainer.Batches(batch, batch)
	trainer := NewProgramTrainer(1)
	_, err = trainer.Train(t.Context(), Task{
		Base: open, Layout: layout, Rank: 16, Start: model.NewAdapter(layout, 1).Slice(16), Columns: columns, Batches: two,
		Spec: training.Spec{Steps: 2, LearningRate: 0.01, Batch: 8}, Sequence: 64, Program: read("program"),
	})
	ok(t, err)
	ok(t, trainer.Close())
	status, err := os.ReadFile("/proc/self/status")
	ok(t, err)
	_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
	fmt.Printf("peak kB %s\n", bytes.Fields(peak)[0])
}
