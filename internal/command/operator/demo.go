package operator

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/internal/evaluation"
	"github.com/starling-fl/starling/internal/fleetdata"
	"github.com/starling-fl/starling/internal/outcome"
	"github.com/starling-fl/starling/internal/progress"
	"github.com/starling-fl/starling/internal/sim"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/wasm"
)

type demoFlags struct {
	data, base, start, out, record string
	task                           string
	reproducible                   bool
	headOnly, verbose, open        bool
	everyRank                      bool
	rounds, clients, vanish        int
	alpha, epsilon                 float64
	unit                           string
	arithmetic                     string
	providerRate                   float64
	adaptive                       bool
	seed                           uint64
	columns                        dataset.Columns
}

// The demo's fleet stands for one of this size, sampled at 1%.
const (
	simulatedPopulation = 1_000_000
	simulatedCohort     = 10_000
)

// Texts are learnt with adapters on all linear layers, in steps whose rates fall over the
// rounds: the best of what was tried on a seed apart (docs/BENCHMARKS.md, "The demo").
const (
	demoSteps     = 8
	demoEndFactor = 0.1
)

func newDemoCmd(a *command.App) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Fine-tune a model across a fleet on this machine, privately, end to end",
		Long: `Start a coordinator and a fleet of devices in one process, connected by real
WebSockets, and fine-tune the default base with DP-DyLoRA: every round draws a
rank, every device trains in its sandbox, clips, quantizes and masks, the
coordinator unmasks only the sum and adds noise. Some devices vanish in
mid-round. The data is generated invoices, or your own labelled file.`,
		Example: "  starling demo\n  starling demo --data reviews.jsonl.gz --alpha 0.1\n  starling demo --privacy-unit provider --adaptive-clip\n  starling demo --reproducible --json",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), a, f) },
	}
	fl := demoFlagSet(&f)
	cmd.Flags().AddFlagSet(fl)
	cmd.Flags().SetNormalizeFunc(fl.GetNormalizeFunc())
	return cmd
}

// demoFlagSet is the command's flags, which fill f.
func demoFlagSet(f *demoFlags) *pflag.FlagSet {
	fl := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "clients" { // as it was called, and is in scripts
			name = "devices"
		}
		return pflag.NormalizedName(name)
	})
	fl.StringVar(&f.data, "data", "", "labelled file instead of generated invoices: "+command.LabelledFormats)
	command.ColumnFlags(fl, &f.columns)
	fl.StringVar(&f.task, "task", "", "classify (texts), tag (words with tags), image (digits), listen (spoken words), answer (questions about documents) or causal (commands into calls of functions); default: what --data holds, texts without it")
	fl.StringVar(&f.base, "base", "", "base folder in Hugging Face layout, or a model's name in the local Hugging Face cache, instead of the embedded default")
	fl.StringVar(&f.start, "start", "", "folder of a PEFT adapter or checkpoint over the same base that the first round begins with")
	fl.StringVar(&f.out, "out", "starling-demo", "folder that gets a folder of its own for this run")
	fl.BoolVar(&f.reproducible, "reproducible", false, "seed every source of randomness: repeats bit for bit, not private")
	fl.BoolVar(&f.headOnly, "head-only", false, "train the classification head alone, for comparison")
	fl.StringVar(&f.record, "record", "", "with --head-only: put the accuracy into this file of records")
	fl.IntVar(&f.rounds, "rounds", 20, "rounds to commit")
	fl.IntVar(&f.clients, "devices", 24, "devices, all drawn in each round")
	fl.IntVar(&f.vanish, "vanish", 2, "devices that vanish in mid-round")
	fl.Float64Var(&f.alpha, "alpha", 1, "Dirichlet concentration that divides a file without users over the devices; smaller is more skewed")
	fl.Float64Var(&f.epsilon, "epsilon", 2, "privacy budget, for the simulated population")
	fl.StringVar(&f.unit, "privacy-unit", "device", "whose presence is hidden: device, or provider: each sender of invoices (each provider or user of --data) on every device")
	fl.Float64Var(&f.providerRate, "provider-rate", 0.25, "with --privacy-unit provider: probability of each provider's coin in a round; training takes as many times longer as it lets providers in")
	fl.BoolVar(&f.adaptive, "adaptive-clip", false, "let the clip norm follow the median of the updates' norms, privately")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the generated data and of every split; with --reproducible of everything")
	fl.StringVar(&f.arithmetic, "arithmetic", "", "of the training programs: fused or exact; default: fused, which is quicker, where this processor has it")
	fl.BoolVar(&f.everyRank, "test-every-rank", false, "score the test split at every rank, not only at the one that validation chose")
	fl.BoolVar(&f.open, "open", false, "show the run's dashboard in a browser")
	fl.BoolVar(&f.verbose, "verbose", false, "log sessions and states to standard error")
	return fl
}

func (f demoFlags) validate() error {
	switch {
	case f.clients < 4 || f.clients > 512:
		return command.Usagef("--devices is %d, want 4..512", f.clients)
	case f.vanish < 0 || f.vanish > f.clients/4:
		return command.Usagef("--vanish is %d, want 0..%d: a quarter of the devices", f.vanish, f.clients/4)
	case f.unit != "device" && f.unit != "provider":
		return command.Usagef("--privacy-unit is %q, want device or provider", f.unit)
	case !(f.providerRate > 0 && f.providerRate <= 1):
		return command.Usagef("--provider-rate is %v, want in (0, 1]", f.providerRate)
	case f.task != "" && !slices.Contains(model.TaskNames(), f.task):
		return command.Usagef("--task is %q, want one of %q", f.task, model.TaskNames())
	case f.arithmetic != "" && f.arithmetic != job.Exact && f.arithmetic != job.Fused:
		return command.Usagef("--arithmetic is %q, want fused or exact", f.arithmetic)
	case f.arithmetic == job.Fused && !wasm.Fuses():
		return command.Usagef("--arithmetic is fused, which this processor does not have: exact runs on any")
	case f.record != "" && !f.headOnly:
		return command.Usagef("--record needs --head-only")
	}
	return nil
}

// load returns the task's data and the name its head-only figure is kept under.
func (f demoFlags) load() (*fleetdata.Data, string, error) {
	if f.data == "" && f.task == "image" {
		d, err := fleetdata.Digits(f.seed, f.clients)
		return d, "digits", err
	}
	if f.data == "" && f.task == "listen" {
		d, err := fleetdata.SpokenWords(f.seed, f.clients)
		return d, "spoken words", err
	}
	if f.data == "" && f.task == "causal" {
		d, err := fleetdata.Commands(f.seed, f.clients)
		return d, "commands", err
	}
	if f.data == "" {
		d, err := fleetdata.Invoices(f.seed, f.clients)
		return d, generatedTask(dataset.GeneratorVersion, f.seed), err
	}
	d, err := fleetdata.File{Path: f.data, Columns: f.columns, Seed: f.seed, Clients: f.clients, Alpha: f.alpha, ByGroup: f.unit == "provider"}.Load()
	if err != nil {
		return nil, "", err
	}
	return d, fileTask(d.SHA256), nil
}

// settings are those that the accuracy of training the head alone depends on,
// beside the task. A base of one's own is none that was measured.
func (f demoFlags) settings() string {
	clip := "fixed"
	if f.adaptive {
		clip = "adaptive"
	}
	unit := f.unit
	if unit == "provider" {
		unit = fmt.Sprintf("provider at rate %v", f.providerRate)
	}
	s := fmt.Sprintf("%d rounds, %d clients, %d vanish, epsilon %v, alpha %v, %s, clip norm %s",
		f.rounds, f.clients, f.vanish, f.epsilon, f.alpha, unit, clip)
	if f.unit == "device" {
		s += fmt.Sprintf(", %d steps, rates that fall to %v", demoSteps, demoEndFactor)
	}
	if f.base != "" {
		s += ", base " + f.base
	}
	if f.start != "" {
		s += ", start " + f.start
	}
	if f.columns != (dataset.Columns{}) {
		s += fmt.Sprintf(", columns %q %q", f.columns.Text, f.columns.Label)
	}
	if f.data != "" && f.seed != 1 {
		s += fmt.Sprintf(", seed %d", f.seed) // of the split
	}
	return s
}

// job is the demo's job: all edges drawn each round, in one shard.
func (f demoFlags) job(d *fleetdata.Data) (coordinator.Job, error) {
	job := job.Default()
	job.Name = "demo: " + d.Name
	job.Labels = d.Labels
	job.Rounds = f.rounds
	job.Base = f.base
	job.Adapter.HeadOnly = f.headOnly
	job.Adapter.Start = f.start
	job.Cohort.Population = f.clients
	job.Cohort.SamplingRate = 1
	job.Shard.Size = max(64, f.clients)
	// A shard this small cannot hold off both a lying coordinator and corrupted
	// devices and still lose two: the demo asks for a bare majority.
	job.Shard.Corrupt, job.Shard.BreachBits = 0, 0
	job.Training.Arithmetic = cmp.Or(f.arithmetic, engine.Quickest())
	job.Privacy.Epsilon = f.epsilon
	job.Privacy.SimulatedPopulation = simulatedPopulation
	job.Privacy.SimulatedCohort = simulatedCohort
	job.Clipping.Adaptive = f.adaptive
	if f.unit == "provider" {
		most, mean, err := d.Providers()
		if err != nil {
			return job, err
		}
		job.Providers.Max, job.Providers.Expected, job.Providers.SamplingRate = most, mean, f.providerRate
	}
	return job, nil
}

// tune chooses how texts are learnt. With providers a step is an example's, and its time
// as many times longer as it lets providers in.
func (f demoFlags) tune(j *coordinator.Job, d *fleetdata.Data) {
	if f.unit != "device" || task.For(d.Test.Form()) != model.TaskClassify {
		return
	}
	j.Training.Steps, j.Training.EndFactor = demoSteps, demoEndFactor
	if !f.headOnly {
		j.Adapter.Targets = []string{model.AllLinear}
	}
}

func runDemo(ctx context.Context, a *command.App, f demoFlags) error {
	start := time.Now()
	if err := f.validate(); err != nil {
		return err
	}
	if f.task == "answer" {
		return runAnswerDemo(ctx, a, f)
	}
	data, task, err := f.load()
	if err != nil {
		return err
	}
	job, err := f.job(data)
	if err != nil {
		return err
	}
	f.tune(&job, data)
	b, err := data.ChooseBase(&job, f.task, f.seed)
	if err != nil {
		return err
	}
	if job.Task == model.TaskCausal.String() && (f.headOnly || f.record != "") {
		return command.Usagef("--task causal has no head: --head-only and --record are not for it")
	}
	job = job.ForBase(b.Config)
	layout, err := outcome.Layout(job, b)
	if err != nil {
		return err
	}
	adapter, err := command.LoadStart(job, b)
	if err != nil {
		return err
	}
	splits, err := evaluation.NewLabelled(b, layout, job.Adapter.Sequence, data.Validation, data.Test)
	if err != nil {
		return err
	}
	written, err := evaluation.NewCompletions(ctx, b, layout, job.Adapter.Sequence, data.Test)
	if err != nil {
		return err
	}
	if written != nil {
		fmt.Fprintf(a.Stderr, "before: exact match %.1f %% of %d completions by people whom nobody has heard\n", 100*written.Before.ExactMatch, written.Len())
	}
	dir := filepath.Join(f.out, time.Now().Format("20060102-150405"))
	if err := command.EnsureDir(dir); err != nil {
		return err
	}
	view := progress.NewView(a.Stderr, job, splits.Note())
	view.Learning = splits.Learning(job.Rounds)
	cfg := f.fleet(a, coordinator.Config{Job: job, Dir: dir, Base: b, Start: adapter, Progress: view.Show}, data)
	splits.Choose(&cfg.Coordinator)
	result, err := sim.Run(ctx, cfg)
	if err != nil {
		return err
	}
	r := outcome.Report{Task: data.Name, Devices: len(data.Clients)}
	r.Settle(job, result.Result)
	r.CountTraffic(result.Traffic)
	if err := r.Measure(ctx, layout, result.Result, splits.Test, f.everyRank); err != nil {
		return err
	}
	if written != nil {
		out, err := written.Report(ctx, r, result.Adapter)
		if err != nil {
			return err
		}
		out.Seconds = time.Since(start).Seconds()
		return a.Emit(out, out.Print)
	}
	r.Seconds = time.Since(start).Seconds()
	if f.record != "" {
		at := strconv.Itoa(0)
		if err := recordHeadOnly(f.record, headOnlyRecord{task, f.settings(), r.RankAccuracy[at], r.RankMacroF1[at]}); err != nil {
			return err
		}
	}
	known, err := findHeadOnly(task, f.settings())
	if err != nil {
		return err
	}
	if known != nil && !f.headOnly {
		r.HeadOnly, r.HeadOnlyMacroF1 = &known.Accuracy, &known.MacroF1
	}
	return a.Emit(r, r.Print)
}
