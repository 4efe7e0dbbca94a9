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
	"github.com/starling-fl/starling/leak"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/program"
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

// try tries what an update of a job shows; nil if nothing could be tried.
func (f *leakFlags) try(ctx context.Context, a *command.App, b *benched, cores int) (*leak.Report, error) {
	o := leak.Options{Trials: f.trials, Lasts: f.lasts}
	if f.data != "" {
		set, err := command.LoadLabelled(f.data, f.columns)
		if err == nil {
			set, err = set.Relabel(b.Labels)
		}
		if err != nil {
			return nil, err
		}
		o.Data = set
	}
	fmt.Fprintf(a.Stderr, "trying what one update shows, for %v at most ...\n", f.lasts)
	r, err := b.tries(ctx, a, o, cores)
	if errors.Is(err, leak.ErrUntried) {
		fmt.Fprintln(a.Stderr, "note:", edge.Escape(err.Error(), false))
		return nil, nil
	}
	return r, err
}

// mostTrying is how long a job may take to be tried before it is joined: whoever chooses
// base and job chooses how long a training takes, too.
const mostTrying = 5 * time.Minute

// leaker tries a job before it is joined: with its program, made again here.
func leaker(a *command.App, cores int) edge.Leaker {
	return func(ctx context.Context, t edge.Trial) (edge.Leak, error) {
		ctx, stop := context.WithTimeoutCause(ctx, mostTrying, fmt.Errorf("it takes more than %v", mostTrying))
		defer stop()
		b, err := made(ctx, t)
		if err != nil {
			return edge.Leak{}, err
		}
		r, err := b.tries(ctx, a, leak.Options{}, cores)
		if ctx.Err() != nil {
			return edge.Leak{}, context.Cause(ctx) //nolint:wrapcheck // our own words
		}
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

// tries runs a check and says how far it is.
func (b *benched) tries(ctx context.Context, a *command.App, o leak.Options, cores int) (_ *leak.Report, err error) {
	p := edge.NewProgramTrainer(1)
	p.Cores = cores
	defer func() { err = errors.Join(err, p.Close()) }()
	o.Progress = func(done, of int) {
		if done == of || done%4 == 0 {
			fmt.Fprintf(a.Stderr, "%d of %d updates read\n", done, of)
		}
	}
	o.Tiny = func(ctx context.Context) (leak.Settings, error) {
		tiny, err := b.tiny(ctx)
		return tiny.settings(p), err
	}
	return leak.Check(ctx, b.settings(p), o)
}

func (b benched) settings(t edge.Trainer) leak.Settings {
	return leak.Settings{
		Base: b.Base, Layout: b.Layout, Rank: b.Rank, Sequence: b.Sequence,
		Spec: b.Spec, Examples: b.Examples, Uplink: b.Uplink, Own: b.Own,
		Program: b.program, Trainer: t, Work: b.Work, Memory: b.Memory,
	}
}

// tiny is the same round on a tiny base.
func (b benched) tiny(ctx context.Context) (benched, error) {
	recipe, err := program.Shorter(b.Recipe, leak.TinySequence)
	if err != nil {
		return b, err
	}
	b.Recipe, b.Sequence = recipe, leak.TinySequence
	if b.Base, err = leak.TinyBase(); err != nil {
		return b, err
	}
	if b.Layout, err = model.NewLayout(b.Base.Config, b.Layout.Method, b.Layout.Classes); err != nil {
		return b, err
	}
	b.program, err = program.Remake(ctx, edge.DefaultPolicy().Work, b.Name, b.Labels, b.Recipe, b.Base, b.Rank, program.Hosts[0])
	return b, err
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
