// Package bench times a round of a job on this machine, and tries what one update of it shows.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/edge/leak"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/l2"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm"
)

// Config sets the timed round, and the trial of its update.
type Config struct {
	Job   string        // job file, or a coordinator's join token or URL; "" for the defaults over two labels
	Base  string        // folder or name in place of the job's base; "" for that
	Read  *model.Base   // the job's base where it was read before; nil: it is read
	Rank  int           // 0: the job's greatest
	Cores int           // most that are used; 0: half of this machine's
	Time  time.Duration // for each kernel
	Plain bool          // a coordinator on another machine may be asked over http

	Trials   int           // updates to attack, 1 to 1000
	LeakTime time.Duration // no more of them are begun after it; 0: it is not tried
	Examples int           // that each of them averages, if the job's steps take so many
	Data     string        // file to make them of; "" for made-up examples
	Columns  dataset.Columns
}

// Check refuses values out of range; its errors name flags.
func (f *Config) Check() error {
	if f.Cores < 0 {
		return usage.Errorf("--cores is %d, want 1 or more, or 0 for half of this machine's", f.Cores)
	}
	if f.Time <= 0 || f.Time > time.Hour {
		return usage.Errorf("--for is %v, want more than 0 and at most 1h", f.Time)
	}
	switch {
	case f.Trials < 1 || f.Trials > 1000:
		return usage.Errorf("--trials is %d, want 1 to 1000", f.Trials)
	case f.LeakTime < 0 || f.LeakTime > time.Hour:
		return usage.Errorf("--leak-for is %v, want at most 1h, or 0 to try nothing", f.LeakTime)
	case f.Examples < 1:
		return usage.Errorf("--examples is %d, want 1 or more", f.Examples)
	case f.Data != "" && f.Job == "":
		return usage.Errorf("--data is for trying what an update of a job shows: give its --job, too")
	}
	return nil
}

// Report describes a device's contribution to a job.
type Report struct {
	Processor string       `json:"processor"` // architecture
	Cores     int          `json:"cores"`     // used, of
	Of        int          `json:"of_cores"`
	Rank      int          `json:"rank"`
	Batch     int          `json:"batch"`
	Sequence  int          `json:"sequence"`
	Steps     int          `json:"steps_a_round"` // where the job counts steps
	Values    int          `json:"values"`        // of an update
	Program   int          `json:"program_bytes"`
	Memory    int64        `json:"memory_bytes"` // of the program, the base's weights included
	FLOPs     uint64       `json:"flops_a_step"`
	Kernels   []Kernel     `json:"kernels"` // join uses the first
	Leak      *leak.Report `json:"leak,omitempty"`
}

// Kernel is the timing of one kernel.
type Kernel struct {
	Name     string  `json:"name"`
	Step     float64 `json:"step_seconds"` // the median
	Examples float64 `json:"examples_a_second"`
	Start    float64 `json:"start_seconds"` // verify, compile, write the weights, the first step
}

// Run times the round, and tells how far it is.
func Run(ctx context.Context, told io.Writer, f Config) (r Report, err error) {
	load := f.FromFile
	if isCoordinator(f.Job) {
		load = f.fromCoordinator
	}
	b, err := load(ctx, told)
	if err != nil {
		return r, err
	}
	if f.Cores == 0 {
		f.Cores = max(1, runtime.GOMAXPROCS(0)/2)
	}
	w, err := b.work()
	if err != nil {
		return r, err
	}
	r = Report{Processor: runtime.GOARCH, Cores: f.Cores, Of: runtime.NumCPU(), Rank: b.Rank, Batch: b.Batch,
		Sequence: b.Sequence, Steps: b.Trial.Steps, Values: b.Layout.Size(b.Rank), Program: len(b.program)}
	p, err := wasm.Load(ctx, b.program, wasm.Config{Limits: wasm.Limits{MemoryPages: wasm.MaxMemoryPages}})
	if err != nil {
		return r, err
	}
	r.Memory, r.FLOPs = int64(p.Report().MemoryPages)<<16, p.Manifest().FLOPs
	if err := p.Close(); err != nil {
		return r, err
	}
	var own *dataset.Set
	if f.Job != "" && f.LeakTime > 0 { // before what takes long
		if own, err = f.examples(b); err != nil {
			return r, err
		}
	}
	kernels := wasm.Kernels()
	if b.Arithmetic == training.Fused {
		kernels = wasm.FusedKernels()
	}
	for _, kernel := range kernels {
		fmt.Fprintf(told, "timing %s ...\n", kernel)
		line, err := w.time(ctx, kernel, f.Cores, f.Time)
		if err != nil {
			return r, fmt.Errorf("%s: %w", kernel, err)
		}
		r.Kernels = append(r.Kernels, line)
	}
	if f.Job != "" && f.LeakTime > 0 {
		if r.Leak, err = f.try(ctx, told, b, f.Cores, own); err != nil {
			return r, err
		}
	}
	return r, nil
}

// work is a round's training on made-up examples.
type work struct {
	task  trainer.Task
	batch task.Batch
}

// harmless returns the training with a rate so low that made-up data does not diverge.
func (b *Round) harmless() training.Spec {
	s := b.Spec
	s.LearningRate = 1e-4
	return s
}

func (b *Round) work() (*work, error) {
	columns, err := task.Columns(b.Layout, b.Sequence)
	if err != nil {
		return nil, err
	}
	batch := task.NewBatch(columns, b.Batch)
	random := rand.New(rand.NewPCG(1, 2))
	for _, v := range batch {
		for i := range v.I32 {
			v.I32[i] = int32(random.IntN(max(1, v.Limit)))
		}
		for i := range v.F32 {
			v.F32[i] = 1 // weights count all examples
		}
	}
	return &work{batch: batch, task: trainer.Task{
		Base:   func(context.Context) (*model.Base, error) { return b.Base, nil },
		Layout: b.Layout, Rank: b.Rank, Start: model.NewAdapter(b.Layout, 1).Slice(b.Rank), Columns: columns,
		Spec: b.harmless(), Sequence: b.Sequence, Program: b.program, Work: b.Work, MostMemory: b.MostMemory,
	}}, nil
}

// Moves trains two steps of the round's own rate on made-up examples, the second on the adapter
// that the first made. It returns the update's norm, or an error that wraps edge.ErrDiverged if
// values are not finite.
func (b *Round) Moves(ctx context.Context) (norm float64, err error) {
	w, err := b.work()
	if err != nil {
		return 0, err
	}
	p := edge.NewProgramTrainer(1)
	defer func() { err = errors.Join(err, p.Close()) }()
	t := w.task
	t.Spec, t.Steps = b.Spec, 2
	t.Batches = w.batches(t.Steps, nil)
	delta, err := p.Train(ctx, t)
	return l2.Norm(delta), err
}

// time trains with a kernel until the time is up, and at least three steps.
func (w *work) time(ctx context.Context, kernel string, cores int, lasts time.Duration) (line Kernel, err error) {
	p := edge.NewProgramTrainer(1)
	p.Cores, p.Kernel = cores, kernel
	defer func() { err = errors.Join(err, p.Close()) }()
	began := time.Now()
	t := w.task
	t.Steps, t.Batches = 1, w.batches(1, nil)
	if _, err := p.Train(ctx, t); err != nil {
		return line, err
	}
	start := time.Since(began)
	t.Steps, t.Batches = 1, w.batches(1, nil)
	began = time.Now()
	if _, err := p.Train(ctx, t); err != nil {
		return line, err
	}
	t.Steps = max(3, int(lasts/max(1, time.Since(began))))
	var at []time.Time // when each step began
	t.Batches = w.batches(t.Steps, &at)
	if _, err := p.Train(ctx, t); err != nil {
		return line, err
	}
	at = append(at, time.Now())
	var steps []time.Duration
	for i := range t.Steps {
		steps = append(steps, at[i+1].Sub(at[i]))
	}
	slices.Sort(steps)
	median := steps[len(steps)/2].Seconds()
	return Kernel{kernel, median, float64(t.Batch) / median, start.Seconds()}, nil
}

// batches yields the same batch again and again, and notes when.
func (w *work) batches(n int, at *[]time.Time) iter.Seq2[task.Batch, error] {
	return func(yield func(task.Batch, error) bool) {
		for range n {
			if at != nil {
				*at = append(*at, time.Now())
			}
			if !yield(w.batch, nil) {
				return
			}
		}
	}
}

// faster returns the kernel that join uses, and the fastest one if it beats that by more than noise; else best is empty.
func (r Report) faster() (used, best Kernel) {
	const differ = 1.05
	for i, k := range r.Kernels {
		if i == 0 {
			used = k
		} else if k.Step*differ < used.Step && (best.Name == "" || k.Step < best.Step) {
			best = k
		}
	}
	return used, best
}

// Print writes the report as text.
func (r Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "rank %d, batches of %d x %d tokens, an update of %d values; program %d kB, memory %.1f MB, %.2f GFLOP a step\n",
		r.Rank, r.Batch, r.Sequence, r.Values, r.Program/1000, float64(r.Memory)/1e6, float64(r.FLOPs)/1e9)
	fmt.Fprintf(w, "%s, %d of %d cores\n\n", r.Processor, r.Cores, r.Of)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "kernel\ta step\texamples a second\tGFLOP/s\ta round's training\tto start\n")
	for i, k := range r.Kernels {
		name, round := k.Name, "-"
		if i == 0 {
			name += " (used)"
		}
		if r.Steps > 0 {
			round = fmt.Sprintf("%.2f s", float64(r.Steps)*k.Step)
		}
		fmt.Fprintf(t, "%s\t%.1f ms\t%.1f\t%.1f\t%s\t%.2f s\n", name, 1000*k.Step, k.Examples, float64(r.FLOPs)/1e9/k.Step, round, k.Start)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if used, best := r.faster(); best.Name != "" {
		fmt.Fprintf(w, "\n%s was faster here, by %.0f %%: join uses %s all the same\n", best.Name, 100*(used.Step/best.Step-1), used.Name)
	}
	if r.Leak == nil {
		return nil
	}
	return printLeak(w, r.Leak)
}
