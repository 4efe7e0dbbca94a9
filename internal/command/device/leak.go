package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/leak"
	"github.com/starling-fl/starling/program"
	"github.com/starling-fl/starling/trainer"
)

// leakFlags say how it is tried what an update shows.
type leakFlags struct {
	trials, examples int
	lasts            time.Duration
	data             string
	columns          dataset.Columns
}

func (f *leakFlags) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.trials, "trials", leak.DefaultTrials, "updates of which it is tried what they show")
	fl.DurationVar(&f.lasts, "leak-for", leak.DefaultLasts, "no more of them are begun after this time; 0: it is not tried")
	fl.IntVar(&f.examples, "examples", edge.DefaultPolicy().Examples, "examples that each of them averages, if the job's steps take so many: the fewest that your policy lets an update average")
	fl.StringVar(&f.data, "data", "", "file of your own examples to make them of, in place of made-up ones: "+command.LabelledFormats)
	command.ColumnFlags(fl, &f.columns)
}

func (f *leakFlags) check(job string) error {
	switch {
	case f.trials < 1 || f.trials > 1000:
		return command.Usagef("--trials is %d, want 1 to 1000", f.trials)
	case f.lasts < 0 || f.lasts > time.Hour:
		return command.Usagef("--leak-for is %v, want at most 1h, or 0 to try nothing", f.lasts)
	case f.examples < 1:
		return command.Usagef("--examples is %d, want 1 or more", f.examples)
	case f.data != "" && job == "":
		return command.Usagef("--data is for trying what an update of a job shows: give its --job, too")
	}
	return nil
}

// tryJob tries what an update of a job shows, of which t is the round's training. It is nil
// where nothing could be tried.
func (f *leakFlags) tryJob(ctx context.Context, a *command.App, j job.Job, t trainer.Task, cores int) (*leak.Report, error) {
	base, err := t.Base(ctx)
	if err != nil {
		return nil, err
	}
	s := leak.Settings{
		Base: base, Layout: t.Layout, Rank: t.Rank, Sequence: j.Adapter.Sequence,
		Batch: j.Training.Batch, Steps: j.Training.Steps, Epochs: j.Training.Epochs, Examples: f.examples,
		Optimizer: j.Training.Optimizer, Rate: j.Training.LearningRate,
		Uplink: j.Wire.Uplink, Own: j.Own(j.Privacy.NoiseMultiplier).Multiplier, Program: t.Program,
	}
	if j.OwnNoise() && j.Privacy.NoiseMultiplier == 0 {
		fmt.Fprintf(a.Stderr, "note: devices add noise of %v clip norms at least; more, which follows from epsilon, is not counted here\n", s.Own)
	}
	o := leak.Options{Trials: f.trials, Lasts: f.lasts}
	if f.data != "" {
		set, err := command.LoadLabelled(f.data, f.columns)
		if err == nil {
			set, err = set.Relabel(j.Labels)
		}
		if err != nil {
			return nil, err
		}
		o.Data = set
	}
	fmt.Fprintf(a.Stderr, "trying what one update shows, for %v at most ...\n", f.lasts)
	r, err := tryLeak(ctx, a, s, o, cores)
	if errors.Is(err, leak.ErrUntried) {
		fmt.Fprintln(a.Stderr, "note:", edge.Escape(err.Error(), false))
		return nil, nil
	}
	return r, err
}

// leaker tries a job before it is joined: with its program, made again here.
func leaker(a *command.App, cores int) edge.Leaker {
	return func(ctx context.Context, t edge.Trial) (edge.Leak, error) {
		trains, err := program.Trains(t.Recipe)
		if err != nil {
			return edge.Leak{}, err
		}
		code, err := program.Remake(ctx, t.Work, t.Name, t.Labels, t.Recipe, t.Base, t.Rank, program.Hosts[0])
		if err != nil {
			return edge.Leak{}, err
		}
		r, err := tryLeak(ctx, a, leak.Settings{
			Base: t.Base, Layout: t.Layout, Rank: t.Rank, Sequence: t.Sequence,
			Batch: t.Batch, Steps: t.Steps, Epochs: t.Epochs, Examples: t.Examples,
			Optimizer: t.Optimizer, Rate: trains.LearningRate, Uplink: t.Uplink, Own: t.Own,
			Program: code, Work: t.Work, Memory: t.Memory,
		}, leak.Options{}, cores)
		if err != nil {
			return edge.Leak{}, err
		}
		found := edge.Leak{Line: r.Line() + " ('starling bench --job' says how, and of your own texts)"}
		if worst, ok := r.Worst(leak.Tokens); ok {
			found.Tokens = worst.Share
		}
		return found, nil
	}
}

// tryLeak runs a check and says how far it is.
func tryLeak(ctx context.Context, a *command.App, s leak.Settings, o leak.Options, cores int) (_ *leak.Report, err error) {
	p := edge.NewProgramTrainer(1)
	p.Cores = cores
	defer func() { err = errors.Join(err, p.Close()) }()
	s.Trainer = p
	o.Progress = func(done, of int) {
		if done == of || done%4 == 0 {
			fmt.Fprintf(a.Stderr, "%d of %d updates read\n", done, of)
		}
	}
	return leak.Check(ctx, s, o)
}

// printLeak writes what was tried, what it came to and what it leaves open.
func printLeak(w io.Writer, r *leak.Report) error {
	made := "made-up examples"
	if r.Own {
		made = "your examples"
	}
	fmt.Fprintf(w, "\n%s\n\n%d updates of %s, as they would be sent in %s, each read as if it stood alone in its sum\n",
		r.Line(), r.Trials, made, r.Uplink)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "attack\tfinds\tof texts not in it\tfinds more by, 95 %\n")
	for _, k := range r.Attacks {
		if k.NotTried != "" {
			fmt.Fprintf(t, "%s\tnot tried: %s\n", k.Name, k.NotTried)
			continue
		}
		fmt.Fprintf(t, "%s\t%d of %d %s\t%d of %d\t%.0f %% (%.0f to %.0f)\n", k.Name, k.Found, k.All, k.Of, k.OtherFound, k.OtherAll, 100*k.Share, 100*k.Low, 100*k.High)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n", leak.Untried)
	return err
}
