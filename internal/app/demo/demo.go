// Package demo runs a coordinator and a fleet of devices in this process, on generated data or a file divided over them.
package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/bases/start"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/progress"
	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm"
)

// Config sets the demo's task, fleet and job.
type Config struct {
	Data         string // labelled file; "" for generated data
	Columns      dataset.Columns
	Task         string  // "" for what Data holds
	Base         string  // folder or name; "" for one that fits the data
	Start        string  // folder of an adapter over the same base that the first round begins with; "" for none
	Out          string  // folder that gets a folder of its own for the run
	Rounds       int     // to commit
	Clients      int     // devices, 4 to 512, all drawn in each round
	Vanish       int     // devices that vanish in mid-round, a quarter of them at most
	Alpha        float64 // Dirichlet concentration that divides a file without users
	Epsilon      float64 // budget, for the simulated population
	Unit         string  // whose presence is hidden: "device" or "provider"
	ProviderRate float64 // of each provider's coin in a round, in (0, 1]
	Adaptive     bool    // the clip norm follows the median of the updates' norms
	Seed         uint64  // of the generated data and of every split
	Reproducible bool    // the seed is that of every secret, too: not private
	Arithmetic   string  // of the training programs, "fused" or "exact"; "" for the quicker one here
	HeadOnly     bool    // the classification head alone is trained
	Record       string  // with HeadOnly: file of records that gets the accuracy
	EveryRank    bool    // the test split is scored at every rank
	Verbose      bool    // sessions and states are logged

	Serve func(*sim.Config) // has browsers served and told where the coordinator is; nil for none
}

// The demo's fleet stands for one of this size, sampled at 1%.
const (
	simulatedPopulation = 1_000_000
	simulatedCohort     = 10_000
)

// Texts are learnt with adapters on all linear layers, in steps whose rates fall over the
// rounds: the best of what was tried on a seed apart (docs/BENCHMARKS.md, "The demo").
const (
	textSteps     = 8
	textEndFactor = 0.1
)

// validate refuses what is out of range; its errors name flags.
func (f Config) validate() error {
	switch {
	case f.Clients < 4 || f.Clients > 512:
		return usage.Errorf("--devices is %d, want 4..512", f.Clients)
	case f.Vanish < 0 || f.Vanish > f.Clients/4:
		return usage.Errorf("--vanish is %d, want 0..%d: a quarter of the devices", f.Vanish, f.Clients/4)
	case f.Unit != "device" && f.Unit != "provider":
		return usage.Errorf("--privacy-unit is %q, want device or provider", f.Unit)
	case !(f.ProviderRate > 0 && f.ProviderRate <= 1):
		return usage.Errorf("--provider-rate is %v, want in (0, 1]", f.ProviderRate)
	case f.Task != "" && !slices.Contains(model.TaskNames(), f.Task):
		return usage.Errorf("--task is %q, want one of %q", f.Task, model.TaskNames())
	case f.Arithmetic != "" && f.Arithmetic != job.Exact && f.Arithmetic != job.Fused:
		return usage.Errorf("--arithmetic is %q, want fused or exact", f.Arithmetic)
	case f.Arithmetic == job.Fused && !wasm.Fuses():
		return usage.Errorf("--arithmetic is fused, which this processor does not have: exact runs on any")
	case f.Record != "" && !f.HeadOnly:
		return usage.Errorf("--record needs --head-only")
	}
	return nil
}

// load returns the task's data and the name its head-only figure is kept under.
func (f Config) load() (*fleetdata.Data, string, error) {
	if f.Data == "" && f.Task == "image" {
		d, err := fleetdata.Digits(f.Seed, f.Clients)
		return d, "digits", err
	}
	if f.Data == "" && f.Task == "listen" {
		d, err := fleetdata.SpokenWords(f.Seed, f.Clients)
		return d, "spoken words", err
	}
	if f.Data == "" && f.Task == "causal" {
		d, err := fleetdata.Commands(f.Seed, f.Clients)
		return d, "commands", err
	}
	if f.Data == "" {
		d, err := fleetdata.Invoices(f.Seed, f.Clients)
		return d, generatedTask(dataset.GeneratorVersion, f.Seed), err
	}
	d, err := fleetdata.File{Path: f.Data, Columns: f.Columns, Seed: f.Seed, Clients: f.Clients, Alpha: f.Alpha, ByGroup: f.Unit == "provider"}.Load()
	if err != nil {
		return nil, "", err
	}
	return d, fileTask(d.SHA256), nil
}

// settings are those that the accuracy of training the head alone depends on,
// beside the task. A base of one's own is none that was measured.
func (f Config) settings() string {
	clip := "fixed"
	if f.Adaptive {
		clip = "adaptive"
	}
	unit := f.Unit
	if unit == "provider" {
		unit = fmt.Sprintf("provider at rate %v", f.ProviderRate)
	}
	s := fmt.Sprintf("%d rounds, %d clients, %d vanish, epsilon %v, alpha %v, %s, clip norm %s",
		f.Rounds, f.Clients, f.Vanish, f.Epsilon, f.Alpha, unit, clip)
	if f.Unit == "device" {
		s += fmt.Sprintf(", %d steps, rates that fall to %v", textSteps, textEndFactor)
	}
	if f.Base != "" {
		s += ", base " + f.Base
	}
	if f.Start != "" {
		s += ", start " + f.Start
	}
	if f.Columns != (dataset.Columns{}) {
		s += fmt.Sprintf(", columns %q %q", f.Columns.Text, f.Columns.Label)
	}
	if f.Data != "" && f.Seed != 1 {
		s += fmt.Sprintf(", seed %d", f.Seed) // of the split
	}
	return s
}

// Job is the demo's job over the data: all devices drawn each round, in one shard.
func (f Config) Job(d *fleetdata.Data) (coordinator.Job, error) {
	job := job.Default()
	job.Name = "demo: " + d.Name
	job.Labels = d.Labels
	job.Rounds = f.Rounds
	job.Base = f.Base
	job.Adapter.HeadOnly = f.HeadOnly
	job.Adapter.Start = f.Start
	job.Cohort.Population = f.Clients
	job.Cohort.SamplingRate = 1
	job.Shard.Size = max(64, f.Clients)
	// A shard this small cannot hold off both a lying coordinator and corrupted
	// devices and still lose two: the demo asks for a bare majority.
	job.Shard.Corrupt, job.Shard.BreachBits = 0, 0
	job.Training.Arithmetic = cmp.Or(f.Arithmetic, engine.Quickest())
	job.Privacy.Epsilon = f.Epsilon
	job.Privacy.SimulatedPopulation = simulatedPopulation
	job.Privacy.SimulatedCohort = simulatedCohort
	job.Clipping.Adaptive = f.Adaptive
	if f.Unit == "provider" {
		most, mean, err := d.Providers()
		if err != nil {
			return job, err
		}
		job.Providers.Max, job.Providers.Expected, job.Providers.SamplingRate = most, mean, f.ProviderRate
	}
	return job, nil
}

// tune chooses how texts are learnt. With providers a step is an example's, and its time
// as many times longer as it lets providers in.
func (f Config) tune(j *coordinator.Job, d *fleetdata.Data) {
	if f.Unit != "device" || task.For(d.Test.Form()) != model.TaskClassify {
		return
	}
	j.Training.Steps, j.Training.EndFactor = textSteps, textEndFactor
	if !f.HeadOnly {
		j.Adapter.Targets = []string{model.AllLinear}
	}
}

// Run runs the demo to its end and returns its report; told hears its progress.
func (f Config) Run(ctx context.Context, told io.Writer) (evaluation.Printer, error) {
	began := time.Now()
	if err := f.validate(); err != nil {
		return nil, err
	}
	if f.Task == "answer" {
		return f.runAnswers(ctx, told)
	}
	data, task, err := f.load()
	if err != nil {
		return nil, err
	}
	job, err := f.Job(data)
	if err != nil {
		return nil, err
	}
	f.tune(&job, data)
	b, err := data.ChooseBase(&job, f.Task, f.Seed)
	if err != nil {
		return nil, err
	}
	if job.Task == model.TaskCausal.String() && (f.HeadOnly || f.Record != "") {
		return nil, usage.Errorf("--task causal has no head: --head-only and --record are not for it")
	}
	job = job.ForBase(b.Config)
	layout, err := outcome.Layout(job, b)
	if err != nil {
		return nil, err
	}
	adapter, err := start.Load(job, b)
	if err != nil {
		return nil, err
	}
	splits, err := evaluation.NewLabelled(b, layout, job.Adapter.Sequence, data.Validation, data.Test)
	if err != nil {
		return nil, err
	}
	written, err := evaluation.NewCompletions(ctx, b, layout, job.Adapter.Sequence, data.Test)
	if err != nil {
		return nil, err
	}
	if written != nil {
		fmt.Fprintf(told, "before: exact match %.1f %% of %d completions by unseen people\n", 100*written.Before.ExactMatch, written.Len())
	}
	dir := filepath.Join(f.Out, time.Now().Format("20060102-150405"))
	if err := named.MakeDir(dir); err != nil {
		return nil, err
	}
	view := progress.NewView(told, job, splits.Note())
	view.Learning = splits.Learning(job.Rounds)
	cfg := f.fleet(told, coordinator.Config{Job: job, Dir: dir, Base: b, Start: adapter, Progress: view.Show}, data)
	splits.Choose(&cfg.Coordinator)
	result, err := sim.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := outcome.Report{Task: data.Name, Devices: len(data.Clients)}
	r.Settle(job, result.Result)
	r.CountTraffic(result.Traffic)
	if err := r.Measure(ctx, layout, result.Result, splits.Test, f.EveryRank); err != nil {
		return nil, err
	}
	pooled := &dataset.Set{Name: data.Name, Labels: data.Labels}
	for _, c := range data.Clients {
		pooled.Examples = append(pooled.Examples, c.Examples...)
	}
	if err := r.Refer(ctx, layout, outcome.OnDevices, pooled, data.Test); err != nil {
		return nil, err
	}
	if written != nil {
		out, err := written.Report(ctx, r, result.Adapter)
		if err != nil {
			return nil, err
		}
		out.Seconds = time.Since(began).Seconds()
		return out, nil
	}
	r.Seconds = time.Since(began).Seconds()
	if f.Record != "" {
		at := strconv.Itoa(0)
		if err := recordHeadOnly(f.Record, HeadOnlyRecord{task, f.settings(), r.RankAccuracy[at], r.RankMacroF1[at]}); err != nil {
			return nil, err
		}
	}
	known, err := f.HeadOnlyOf(task)
	if err != nil {
		return nil, err
	}
	if known != nil && !f.HeadOnly {
		r.HeadOnly, r.HeadOnlyMacroF1 = &known.Accuracy, &known.MacroF1
	}
	return r, nil
}
