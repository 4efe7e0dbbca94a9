package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/progress"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/job"
	grids "github.com/starling-fl/starling/lab/report"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/simulate"
)

type simulateFlags struct {
	settings   sweep.Settings
	job, base  string
	out        string
	plot       string
	rounds     int
	epsilon    float64
	trueCohort bool
	reference  bool
	workers    int
	set        []string
	columns    dataset.Columns
	engine     engine.Flags
	queue      queueFlags
	slow       slowness
}

func newSimulateCmd(a *command.App) *cobra.Command {
	f := simulateFlags{settings: sweep.DefaultSettings(), engine: plugins.Flags()}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate a deployment: its accuracy, privacy and bytes",
		Long: `Run a job over a population of up to millions in this process: the same draws,
the same training programs, the same clipping, quantization and noise as over
sockets, without sockets and masks. By default a small cohort is trained with the
noise that the true cohort's mean would carry; --true-cohort trains all of it.

The population is a labelled file, divided as --partition says, else by user where it names users, else by
label with Dirichlet(alpha), and reused where it is smaller than the population; or
generated invoices, different for every client. A part of the file is held out to
choose the rank, another to report.

An interrupted run goes on where it was when the same command is given again. Every
secret is derived from --seed: nothing here protects anybody, and the epsilon is
what the simulated deployment would spend.`,
		Example: "  starling simulate --rounds 40\n  starling simulate --data reviews.jsonl --population 30000 --epsilon 4\n  starling simulate --job job.yaml --set adapter.rank_min=8 --set adapter.rank_max=8 --json",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.trueCohort {
				f.settings.Cohort = 0
			}
			if f.plot != "" {
				if err := grids.CheckPlotName(f.plot); err != nil {
					return usage.Errorf("--plot %.80q: want a name that ends in %s", f.plot, strings.Join(grids.Formats, ", "))
				}
				if f.settings.Every == 0 {
					return usage.Errorf("--plot: --every is 0, and accuracy is measured at the end alone: give --every 1 or more")
				}
			}
			return runSimulate(cmd.Context(), a, f, cmd.Flags().Changed)
		},
	}
	fl, s := cmd.Flags(), &f.settings
	f.addRun(fl)
	fl.StringVar(&s.Data, "data", "", "labelled file (.tsv, .csv, .jsonl, plain or .gz), or a folder of images with a folder for each label, instead of generated invoices")
	fl.Float64Var(&s.Alpha, "alpha", s.Alpha, "Dirichlet concentration that divides a file without users; smaller is more skewed")
	fl.IntVar(&s.Examples, "examples", s.Examples, "mean number of examples a client holds")
	divisionFlags(fl, s)
	fl.BoolVar(&f.reference, "reference", false, "simulate the same without noise, and without noise and clipping, too: which of them costs what")
	fl.StringVar(&f.out, "out", "starling-simulate", "folder that gets a folder of its own for these settings")
	fl.StringVar(&f.plot, "plot", "", "file that shows accuracy against epsilon, bytes and rank: .svg, .pdf, .png or .tex (pgfplots); runs in --out that differ in the seed alone give it intervals")
	fl.Var(&f.slow, "slow", "share of slow devices, how many times longer they train and how long the others do (20s): what rounds then take, and whether deadlines leave them out")
	f.queue.add(fl)
	command.Headings(fl,
		[]string{"What is simulated", "job", "set", "base", "population", "sampling-rate", "cohort", "true-cohort", "rounds", "epsilon", "dropout", "slow", "seed"},
		[]string{"Data", "data", "test", "examples", "alpha", "partition", "iid", "min-per-class", "min-examples", "map", "text-column", "label-column", "unlabelled"},
		[]string{"Results", "out", "reference", "plot", "every", "validation"},
		[]string{"Computing", "workers", "engine", "together", "pjrt"},
		[]string{"Other machines", "nats", "nats-ca", "nats-cert", "nats-key", "nats-creds", "nats-pin", "nats-listen", "audit"})
	return cmd
}

// addRun adds what any run is told, whoever its clients are.
func (f *simulateFlags) addRun(fl *pflag.FlagSet) {
	s := &f.settings
	fl.StringVar(&f.job, "job", "", "job file; what it does not name has its default")
	fl.StringVar(&f.base, "base", "", "base folder in Hugging Face layout instead of the embedded default")
	fl.IntVar(&s.Population, "population", s.Population, "registered clients N")
	fl.Float64Var(&s.SamplingRate, "sampling-rate", s.SamplingRate, "probability of each client's coin in a round")
	fl.IntVar(&s.Cohort, "cohort", s.Cohort, "expected clients that are trained in a round, for sampling-rate*population")
	fl.BoolVar(&f.trueCohort, "true-cohort", false, "train the true cohort, sampling-rate*population clients a round")
	fl.IntVar(&f.rounds, "rounds", 20, "rounds (or rounds in the job file)")
	fl.Float64Var(&f.epsilon, "epsilon", 2, "privacy budget (or privacy.epsilon in the job file)")
	fl.Float64Var(&s.Dropout, "dropout", 0, "probability with which a drawn client's update never arrives")
	fl.Uint64Var(&s.Seed, "seed", 1, "seed of everything")
	fl.IntVar(&s.Every, "every", s.Every, "rounds between two measurements; 0: only at the end")
	fl.IntVar(&s.Validation, "validation", s.Validation, "texts scored in each of them, 0: all that are held out")
	fl.StringArrayVar(&f.set, "set", nil, "key=value of the job file, dotted (repeatable)")
	fl.IntVar(&f.workers, "workers", runtime.NumCPU(), "clients that train side by side; the result does not depend on it")
	command.ColumnFlags(fl, &f.columns)
	f.engine.Add(fl)
	f.engine.AddTogether(fl)
}

// divisionFlags are those that say what of a file clients, validation and test get.
func divisionFlags(fl *pflag.FlagSet, s *sweep.Settings) {
	fl.StringVar(&s.Test, "test", "", "labelled file of its own for the test part, instead of a tenth of --data")
	fl.StringVar(&s.Partition, "partition", "", `file that says which examples of --data each client has: .json lists of their numbers from 0, or .csv, .tsv or .jsonl with a column "client"`)
	fl.IntVar(&s.MinPerClass, "min-per-class", 0, "leave out labels of a file that fewer examples have")
	fl.IntVar(&s.MinExamples, "min-examples", 0, "leave out clients of a file with fewer examples")
	fl.BoolVar(&s.IID, "iid", false, "shuffle the file's examples over its clients, each keeping its number")
}

// resolve puts flags and job file together.
func (f *simulateFlags) resolve(given func(string) bool) (sweep.Settings, error) {
	if math.IsInf(f.epsilon, 0) || math.IsNaN(f.epsilon) {
		return sweep.Settings{}, usage.Errorf("--epsilon is %v, want a number; without noise and claim: --set privacy.none=true", f.epsilon)
	}
	s := f.settings
	s.Job = map[string]any{}
	if f.job != "" {
		var err error
		if s, err = s.WithJob(f.job); err != nil {
			return s, err
		}
	}
	var err error
	put := func(flag, key string, value any) {
		if err == nil && (given(flag) || f.job == "") {
			s, err = s.With(key, value)
		}
	}
	put("rounds", "rounds", f.rounds)
	put("epsilon", "privacy.epsilon", f.epsilon)
	for _, pair := range f.set {
		key, text, ok := strings.Cut(pair, "=")
		if !ok {
			return s, usage.Errorf("--set %q: want key=value", pair)
		}
		if err != nil {
			break
		}
		var value any
		if e := strict.Decode([]byte(text), &value); e != nil {
			return s, usage.Errorf("--set %s: %v", key, e)
		}
		s, err = s.With(key, value)
	}
	if err != nil {
		return s, usage.Wrap(err)
	}
	if f.base == "" {
		f.base, err = jobBase(s.Job, f.job)
	}
	delete(s.Job, "base")
	if err == nil {
		s, err = s.Fill(func(setting string) bool {
			return given(strings.ReplaceAll(setting, "_", "-")) || setting == "cohort" && f.trueCohort
		})
	}
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return s, usage.Wrap(err)
	}
	if s.Unprotected() && !f.sets("unclipped") && !s.NamesClipping() {
		s.Unclipped = true
	}
	return s.WithTrueCohort(), nil
}

// sets reports whether --set gives a key.
func (f *simulateFlags) sets(key string) bool {
	return slices.ContainsFunc(f.set, func(pair string) bool { return strings.HasPrefix(pair, key+"=") })
}

// jobBase is the base that a job file names: beside the file where a folder of that name is there.
func jobBase(keys map[string]any, file string) (string, error) {
	named, there := keys["base"]
	path, isText := named.(string)
	if there && named != nil && !isText {
		return "", usage.Errorf("base is %v, want the name of a folder", named)
	}
	if beside := filepath.Join(filepath.Dir(file), path); path != "" && file != "" && !filepath.IsAbs(path) {
		if info, err := os.Stat(beside); err == nil && info.IsDir() {
			return beside, nil
		}
	}
	return path, nil
}

func runSimulate(ctx context.Context, a *command.App, f simulateFlags, given func(string) bool) (err error) {
	s, err := f.resolve(given)
	if err == nil {
		err = f.queue.check(f.workers)
	}
	if err != nil {
		return err
	}
	lab, end, err := openLab(a, f.base, f.workers, f.engine, f.columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	view := &simulateView{w: a.Stderr}
	lab.Progress = view.show
	lab.Doing = func(what string) { view.slow.begin(a.Stderr, quiet, what) }
	defer view.slow.begin(a.Stderr, 0, "")
	lab.Begin = func(_ sweep.Point, done int, others []string) { sayBegin(a.Stderr, "", done, others) }
	if err := lab.Check(s); err != nil { // before anything is said or made
		return asFlags(err)
	}
	late, err := f.slow.in(&s)
	if err != nil {
		return err
	}
	bases.SayTask(a.Stderr, s.NamesTask(), lab.Base)
	if err := settleArithmetic(a.Stderr, lab, f.out, &s); err != nil {
		return err
	}
	if err := named.MakeDir(f.out); err != nil {
		return err
	}
	stop, err := f.queue.serve(ctx, a, lab, f.engine.Together)
	if err != nil {
		return err
	}
	defer stop()
	id, err := lab.ID(s)
	if err != nil {
		return err
	}
	cohort := fmt.Sprintf("%d clients a round represent %.0f", s.Cohort, s.SamplingRate*float64(s.Population))
	switch {
	case s.Fixed():
		cohort = fmt.Sprintf("%d of them drawn for each round", s.Cohort)
	case s.Cohort == 0:
		cohort = fmt.Sprintf("the true cohort, %.0f clients a round", s.SamplingRate*float64(s.Population))
	}
	if s.Unclipped {
		fmt.Fprintln(a.Stderr, "no update is clipped, since the job promises no privacy: give privacy.clip_norm to clip as a fleet does")
	}
	fmt.Fprintf(a.Stderr, "%d registered clients, %s; folder %s\n", s.Population, cohort, filepath.Join(f.out, id))
	r, done, err := lab.Make(ctx, sweep.Point{Settings: s}, f.out)
	view.slow.begin(a.Stderr, 0, "")
	answer := simulation{Record: r, Slow: late, Checkpoint: filepath.Join(f.out, id, sweep.CheckpointFolder)}
	if errors.Is(err, sweep.ErrCheckpoint) {
		fmt.Fprintln(a.Stderr, err)
		answer.Checkpoint = ""
	} else if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(a.Stderr, "interrupted: the same command goes on from here")
		}
		return err
	}
	if f.reference && r != nil {
		if err := controls(ctx, a.Stderr, lab, view, f.out, r); err != nil {
			return err
		}
	}
	if done {
		fmt.Fprintln(a.Stderr, "these settings were simulated before: this is their result")
	}
	err = a.Emit(answer, func(w io.Writer) error { return answer.print(w) })
	sayWarnings(a.Stderr, "", r)
	if err == nil && f.plot != "" {
		err = plotRuns(a.Stderr, f.plot, f.out, r)
	}
	return err
}

// asFlags adds to an error that recommends keys how they are given here.
func asFlags(err error) error {
	remedy, ok := job.RemedyOf(err)
	if !ok {
		return err
	}
	flags := ""
	for _, c := range remedy {
		switch {
		case c.Value == nil:
		case strings.Contains(c.Key, "."):
			flags += fmt.Sprintf(" --set %s=%v", c.Key, c.Value)
		default:
			flags += fmt.Sprintf(" --%s %v", strings.ReplaceAll(c.Key, "_", "-"), c.Value)
		}
	}
	if flags == "" {
		return err
	}
	return fmt.Errorf("%w:%s", err, flags)
}

// plotRuns draws a run, and those of other seeds beside it.
func plotRuns(w io.Writer, name, folder string, r *sweep.Record) error {
	all, err := sweep.Seeds(folder, r)
	if err != nil {
		return err
	}
	p, err := grids.Runs(all)
	if err != nil {
		return err
	}
	data, err := p.File(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n", name, p.Caption)
	return durable.Replace(name, data, 0o644)
}

// sayWarnings says why a run's figures may mislead; head names the run.
func sayWarnings(w io.Writer, head string, r *sweep.Record) {
	for _, said := range r.Warnings() {
		fmt.Fprintf(w, "%s%s\n", head, said)
	}
}

// sayBegin says what was found of a run before its rounds begin; head names the run.
func sayBegin(w io.Writer, head string, done int, others []string) {
	if done > 0 {
		fmt.Fprintf(w, "%sgoing on with a run that was interrupted after round %d\n", head, done)
		return
	}
	for _, path := range others {
		fmt.Fprintf(w, "%sbegun anew: %s is of a run that was interrupted under another base, engine, data or version; it is left alone\n", head, path)
	}
}

// simulateView follows a simulation on standard error: a line a round, and one for what else takes long.
type simulateView struct {
	w      io.Writer
	headed bool
	began  time.Time
	first  int // the first round of this process
	slow   doing
}

// doing says what is being done once it has taken a while.
type doing struct {
	mu    sync.Mutex
	later *time.Timer
	at    int // what is being done, counted
}

// quiet is how long something may take before it is spoken of.
const quiet = 3 * time.Second

// begin ends what was being done, and says what is done now if nothing else begins within the wait.
func (d *doing) begin(w io.Writer, wait time.Duration, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.later != nil {
		d.later.Stop()
	}
	d.at++
	if now := d.at; what != "" {
		d.later = time.AfterFunc(wait, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.at == now {
				fmt.Fprintf(w, "  %s ...\n", what)
			}
		})
	}
}

func (v *simulateView) show(_ sweep.Point, r simulate.Round, of int) {
	v.slow.begin(v.w, 0, "")
	if !v.headed {
		fmt.Fprintln(v.w, "  round  rank  cohort  clipped   signal    noise  accuracy     left")
		v.headed, v.began, v.first = true, time.Now(), r.Number
	}
	accuracy := "–"
	if best, ok := progress.Best(r.Accuracy); ok {
		accuracy = fmt.Sprintf("%.1f %%", 100*best.Accuracy)
	}
	left := "–"
	if made := r.Number - v.first; made > 0 {
		left = (time.Since(v.began) / time.Duration(made) * time.Duration(of-r.Number)).Round(time.Second).String()
	}
	note := ""
	if r.NoiseOnly {
		note = "  noise only: the cohort is below its floor"
	}
	fmt.Fprintf(v.w, "%3d/%-3d  %4d  %6d  %5.0f %%  %7.4f  %7.4f  %8s  %7s%s\n", r.Number, of, r.Rank, r.Cohort, 100*r.Clipped,
		r.SignalNorm, r.NoiseNorm, accuracy, left, note)
}

// simulation is a simulation's result, and where what it made lies.
type simulation struct {
	*sweep.Record
	Checkpoint string      `json:"checkpoint,omitempty"`
	Slow       *stragglers `json:"slow,omitempty"`
}

// print is the result for people.
func (r simulation) print(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("What the deployment would come to (a simulation protects nobody)")
	line("")
	if r.ANLS != nil {
		line("  exact match     %5.1f %%  at rank %d, which validation chose (%.1f %%)", 100*r.Accuracy, r.Rank, 100*r.Validation)
		line("  ANLS            %5.1f", 100**r.ANLS)
		for _, name := range slices.Sorted(maps.Keys(r.Sources)) {
			line("    of %-10.40s %5.1f", name, 100*r.Sources[name])
		}
	} else if r.WordErrors != nil {
		line("  word errors     %5.1f %%  at rank %d, which validation chose (%.1f %%)", 100**r.WordErrors, r.Rank, 100*(1-r.Validation))
		line("  characters      %5.1f %% errors", 100**r.CharacterErrors)
	} else {
		line("  test accuracy   %5.1f %%  at rank %d, which validation chose (%.1f %%)", 100*r.Accuracy, r.Rank, 100*r.Validation)
		line("  macro-F1        %5.1f %%", 100*r.MacroF1)
	}
	r.sayReferences(line)
	line("  privacy         %s", r.Guarantee)
	line("  noise           z %.4g; norm %.3g of the mean update's %.3g; rho %.3g", r.NoiseMultiplier, r.NoiseNorm, r.SignalNorm, r.Rho)
	line("  clipped         %5.1f %% of updates", 100*r.Clipped)
	line("  a device moves  %s up, %s down in a round it is drawn in (vector and slice, without keys)", terminal.Bytes(int64(r.BytesUp)), terminal.Bytes(int64(r.BytesDown)))
	if r.Division != nil {
		line("  data            %s", r.Division)
	}
	if r.Slow != nil {
		r.Slow.say(line)
	}
	line("  engine          %s", r.Engine)
	line("  took            %s", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second/10))
	if limit := r.Limit(); limit != "" {
		line("")
		line("%s", limit)
	}
	if r.Checkpoint != "" {
		line("")
		line("Files: %s", r.Checkpoint)
		line("Next:  starling evaluate --checkpoint %s FILE", r.Checkpoint)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
