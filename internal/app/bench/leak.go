package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/edge/leak"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/program"
)

// examples are the owner's that updates are made of; nil where made-up ones are.
func (f *Config) examples(b *Round) (*dataset.Set, error) {
	if f.Data == "" {
		return nil, nil
	}
	set, err := f.Columns.Load(f.Data)
	if err != nil {
		return nil, err
	}
	return set.Relabel(b.Labels)
}

// try tries what an update of a job shows, of own examples or, if these are nil, made-up ones; nil if nothing could
// be tried.
func (f *Config) try(ctx context.Context, told io.Writer, b *Round, cores int, own *dataset.Set) (*leak.Report, error) {
	o := leak.Options{Trials: f.Trials, Lasts: f.LeakTime, Data: own}
	fmt.Fprintf(told, "trying what one update shows, for %v at most ...\n", f.LeakTime)
	r, err := b.Try(ctx, told, o, cores)
	if errors.Is(err, leak.ErrNotTried) {
		fmt.Fprintln(told, "note:", edge.Escape(err.Error(), false))
		return nil, nil
	}
	return r, err
}

// Try tries to read an update of the round, and reports progress.
func (b *Round) Try(ctx context.Context, told io.Writer, o leak.Options, cores int) (_ *leak.Report, err error) {
	p := edge.NewProgramTrainer(1)
	p.Cores = cores
	defer func() { err = errors.Join(err, p.Close()) }()
	o.Progress = func(done, of int) {
		if done == of || done%4 == 0 {
			fmt.Fprintf(told, "%d of %d updates read\n", done, of)
		}
	}
	o.Tiny = func(ctx context.Context) (leak.Settings, error) {
		tiny, err := b.tiny(ctx)
		return tiny.settings(p), err
	}
	return leak.Check(ctx, b.settings(p), o)
}

func (b Round) settings(t edge.Trainer) leak.Settings {
	return leak.Settings{
		Base: b.Base, Layout: b.Layout, Rank: b.Rank, Sequence: b.Sequence,
		Spec: b.Spec, Examples: b.Examples, Uplink: b.Uplink, Own: b.Own, Rounds: b.Rounds, Bits: b.Bits(),
		Called: b.Called(), Groups: b.Groups, Project: b.Project,
		Program: b.program, Trainer: t, Work: b.Work, MostMemory: b.MostMemory,
	}
}

// tiny is the same round on a tiny base.
func (b Round) tiny(ctx context.Context) (Round, error) {
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
	_, err := fmt.Fprintf(w, "%s\n", leak.Limits)
	return err
}
