package device

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

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/leak"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/trainer"
	"github.com/starling-fl/starling/wasm"
)

type benchFlags struct {
	job, base string
	rank      int
	cores     int
	lasts     time.Duration
	plain     bool
	leak      leakFlags
}

func newBenchCmd(a *command.App) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a job's training on this device, before joining it",
		Long: `Compile the training program of a job, run it in the sandbox as 'starling join'
would, on made-up data, and print what this device would contribute: steps and
examples a second, the memory that it takes, and which of this processor's
kernels compute its matrix products. Each kernel is timed; join uses the first.
All of them give the same bits, those of the job's training.arithmetic.

Of a job it is also tried what one update shows: some are made of made-up examples, or
of those in --data, as this device would make and send them, and a few attacks of a
coordinator that sees one of them alone are played. Nothing leaves this machine. What
they find is there; what they do not find may be.`,
		Example: `  starling bench
  starling bench --job job.yaml --cores 2
  starling bench --job job.yaml --data my.tsv --trials 20
  starling bench --job https://fl.example.org:8443
  starling bench --base ./minilm --json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.cores < 0 {
				return command.Usagef("--cores is %d, want 1 or more, or 0 for half of this machine's", f.cores)
			}
			if f.lasts <= 0 || f.lasts > time.Hour {
				return command.Usagef("--for is %v, want more than 0 and at most 1h", f.lasts)
			}
			if err := f.leak.check(f.job); err != nil {
				return err
			}
			return bench(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.job, "job", "", "job file (YAML), or a coordinator's join token or http(s) URL; without one, the defaults over two labels")
	cmd.Flags().BoolVar(&f.plain, "allow-plain-http", false, "ask a coordinator on another machine over http, which nobody encrypts")
	cmd.Flags().StringVar(&f.base, "base", "", "base folder or name instead of the job's, or of the embedded default")
	cmd.Flags().IntVar(&f.rank, "rank", 0, "rank to train at; 0: the job's greatest, the dearest")
	cmd.Flags().IntVar(&f.cores, "cores", 0, "most cores to train on; 0: half of this machine's, as join")
	cmd.Flags().DurationVar(&f.lasts, "for", 2*time.Second, "how long to run each kernel")
	f.leak.add(cmd.Flags())
	return cmd
}

// benchReport is what a device would contribute to a job.
type benchReport struct {
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
	Kernels   []kernelLine `json:"kernels"` // join uses the first
	Leak      *leak.Report `json:"leak,omitempty"`
}

// kernelLine is one way of computing.
type kernelLine struct {
	Name     string  `json:"name"`
	Step     float64 `json:"step_seconds"` // the median
	Examples float64 `json:"examples_a_second"`
	Start    float64 `json:"start_seconds"` // verify, compile, write the weights, the first step
}

func bench(ctx context.Context, a *command.App, f benchFlags) error {
	load := f.fromFile
	if isCoordinator(f.job) {
		load = f.fromCoordinator
	}
	b, err := load(ctx, a)
	if err != nil {
		return err
	}
	if f.cores == 0 {
		f.cores = max(1, runtime.GOMAXPROCS(0)/2)
	}
	w, err := b.work()
	if err != nil {
		return err
	}
	r := benchReport{Processor: runtime.GOARCH, Cores: f.cores, Of: runtime.NumCPU(), Rank: b.Rank, Batch: b.Batch,
		Sequence: b.Sequence, Steps: b.Trial.Steps, Values: b.Layout.Size(b.Rank), Program: len(b.program)}
	p, err := wasm.Load(ctx, b.program, wasm.Config{Limits: wasm.Limits{MemoryPages: wasm.MaxMemoryPages}})
	if err != nil {
		return err
	}
	r.Memory, r.FLOPs = int64(p.Report().MemoryPages)<<16, p.Manifest().FLOPs
	if err := p.Close(); err != nil {
		return err
	}
	kernels := wasm.Kernels()
	if b.Arithmetic == training.Fused {
		kernels = wasm.FusedKernels()
	}
	for _, kernel := range kernels {
		fmt.Fprintf(a.Stderr, "timing %s ...\n", kernel)
		line, err := w.time(ctx, kernel, f.cores, f.lasts)
		if err != nil {
			return fmt.Errorf("%s: %w", kernel, err)
		}
		r.Kernels = append(r.Kernels, line)
	}
	if f.job != "" && f.leak.lasts > 0 {
		if r.Leak, err = f.leak.try(ctx, a, b, f.cores); err != nil {
			return err
		}
	}
	return a.Emit(r, r.print)
}

// benchWork is a round's training on made-up examples.
type benchWork struct {
	task  trainer.Task
	batch task.Batch
}

// harmless is the training at a rate by which made-up data does not diverge.
func (b *benched) harmless() training.Spec {
	s := b.Spec
	s.LearningRate = 1e-4
	return s
}

func (b *benched) work() (*benchWork, error) {
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
	return &benchWork{batch: batch, task: trainer.Task{
		Base:   func(context.Context) (*model.Base, error) { return b.Base, nil },
		Layout: b.Layout, Rank: b.Rank, Start: model.NewAdapter(b.Layout, 1).Slice(b.Rank), Columns: columns,
		Spec: b.harmless(), Sequence: b.Sequence, Program: b.program, Work: b.Work, Memory: b.Memory,
	}}, nil
}

// time trains with a kernel until the time is up, and at least three steps.
func (w *benchWork) time(ctx context.Context, kernel string, cores int, lasts time.Duration) (line kernelLine, err error) {
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
	return kernelLine{kernel, median, float64(t.Batch) / median, start.Seconds()}, nil
}

// batches yields the one batch again and again, and notes when.
func (w *benchWork) batches(n int, at *[]time.Time) iter.Seq2[task.Batch, error] {
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

func (r benchReport) print(w io.Writer) error {
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
	if err := t.Flush(); err != nil || r.Leak == nil {
		return err
	}
	return printLeak(w, r.Leak)
}
