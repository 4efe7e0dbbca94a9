package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/usage"
	grids "github.com/starling-fl/starling/lab/report"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/simulate"
)

type sweepFlags struct {
	base, out string
	preset    string
	list      bool
	data      string
	test      string
	partition string
	account   string
	workers   int
	dryRun    bool
	columns   dataset.Columns
	engine    engine.Flags
	queue     queueFlags
}

func newSweepCmd(a *command.App) *cobra.Command {
	f := sweepFlags{engine: plugins.Flags()}
	cmd := &cobra.Command{
		Use:   "sweep FILE|--preset NAME",
		Short: "Simulate a grid of settings and keep one table of results",
		Long: `Simulate every combination of a sweep file's axes and seeds (docs/SIMULATE.md). Runs
that are done are skipped, an interrupted one goes on: give the same command again. One that fails, such as by
training that diverges, is noted and left behind; several processes may share a folder.
The folder gets results.csv, one row a run with every setting and figure;
starling report DIR makes tables and plots of it. --preset takes the file of a published
table or figure (--presets lists them); starling reproduce holds what comes out
against what was published.`,
		Example: "  starling sweep examples/sweep.yaml --out methods\n  starling report methods\n  starling sweep --preset paper004-table4-small --data R8.train.txt.gz",
		Args: func(_ *cobra.Command, args []string) error {
			want := 1
			if f.preset != "" || f.list {
				want = 0
			}
			if len(args) != want {
				return usage.Errorf("want one sweep file or --preset, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return a.Emit(sweep.Presets(), func(w io.Writer) error {
					_, err := fmt.Fprintln(w, strings.Join(sweep.Presets(), "\n"))
					return err
				})
			}
			plan, name, err := f.plan(args)
			if err != nil {
				return err
			}
			return runSweep(cmd.Context(), a, f, plan, name)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.preset, "preset", "", "the sweep of a published table or figure, in place of a file")
	command.Values(cmd, "preset", sweep.Presets()...)
	fl.BoolVar(&f.list, "presets", false, "list the presets and end")
	fl.StringVar(&f.data, "data", "", "labelled file that every run simulates, in place of the sweep file's")
	fl.StringVar(&f.partition, "partition", "", "file that says which examples of --data each client has (see simulate)")
	fl.StringVar(&f.test, "test", "", "labelled file of its own for the test part of --data")
	fl.StringVar(&f.account, "account-search", "", "count the privacy of the file's search: draw its number of runs by poisson:MEAN, geometric:MEAN, logarithmic:MEAN or negative-binomial:ETA:MEAN")
	fl.StringVar(&f.base, "base", "", "base folder in Hugging Face layout instead of the embedded default")
	fl.StringVar(&f.out, "out", "", "the sweep's folder (default: the sweep file's name without its ending)")
	fl.IntVar(&f.workers, "workers", runtime.NumCPU(), "clients that train side by side; results do not depend on it")
	fl.BoolVar(&f.dryRun, "dry-run", false, "check every run's settings and budget and list them, without running any")
	command.ColumnFlags(fl, &f.columns)
	f.engine.Add(fl)
	f.engine.AddTogether(fl)
	f.queue.add(fl)
	return cmd
}

// swept is what a sweep says of itself.
type swept struct {
	Folder string `json:"folder"`
	Table  string `json:"table"`
	Made   int    `json:"made"`
	Before int    `json:"done_before"`
	Busy   int    `json:"busy,omitempty"` // being made by another process
	// Failed lists the runs that failed: the same command tries them again.
	Failed []sweep.Failure `json:"failed,omitempty"`
}

// plan reads the sweep file or preset, and says what its folder is called.
func (f sweepFlags) plan(args []string) (plan *sweep.Plan, name string, err error) {
	if f.preset != "" {
		name = f.preset
		_, plan, err = sweep.Preset(f.preset)
	} else {
		name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
		plan, err = sweep.Load(args[0])
	}
	if err == nil && f.account != "" {
		err = plan.AccountSearch(f.account)
	}
	if f.test+f.partition != "" && f.data == "" {
		return nil, "", usage.Errorf("--test and --partition are of --data: give it too, or name them in the sweep file")
	}
	if err == nil && f.data != "" {
		err = plan.Over(f.data, f.test, f.partition)
	}
	return plan, name, err
}

func runSweep(ctx context.Context, a *command.App, f sweepFlags, plan *sweep.Plan, name string) (err error) {
	if err := f.queue.check(f.workers); err != nil {
		return err
	}
	if f.out == "" {
		f.out = name
	}
	lab, end, err := openLab(a, f.base, f.workers, f.engine, f.columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var settings []*sweep.Settings
	for i := range plan.Points {
		settings = append(settings, &plan.Points[i].Settings)
	}
	if err := settleArithmetic(a.Stderr, lab, filepath.Join(f.out, sweep.RunsFolder), settings...); err != nil {
		return err
	}
	// What would be refused is refused now, not after hours.
	for i, p := range plan.Points {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := lab.Check(p.Settings); err != nil {
			return fmt.Errorf("run %d of %d (%s): %w", i+1, len(plan.Points), sweep.Place(plan.Axes, p.On), err)
		}
		if f.dryRun {
			fmt.Fprintf(a.Stderr, "%4d/%d  %s\n", i+1, len(plan.Points), sweep.Place(plan.Axes, p.On))
		}
	}
	bases.SayTask(a.Stderr, !slices.ContainsFunc(plan.Points, func(p sweep.Point) bool { return !p.Settings.NamesTask() }), lab.Base)
	out := swept{Folder: f.out, Table: filepath.Join(f.out, sweep.TableFile)}
	if f.dryRun {
		return a.Emit(out, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%d runs, each of them possible\n", len(plan.Points))
			return err
		})
	}
	if err := lab.Keep(plan, f.out); err != nil {
		return err
	}
	stop, err := f.queue.serve(ctx, a, lab, f.engine.Together)
	if err != nil {
		return err
	}
	defer stop()
	index, before, err := sweep.Read(f.out)
	if err != nil {
		return err
	}
	strays, err := sweep.Strays(f.out, index)
	if err != nil {
		return err
	}
	if len(strays) > 0 {
		fmt.Fprintf(a.Stderr, "%d runs of another sweep are in %s: they are kept, and left out of the table\n", len(strays), f.out)
	}
	began := time.Now()
	for i, p := range plan.BySeed() {
		head := fmt.Sprintf("%4d/%d  %s", i+1, len(plan.Points), sweep.Place(plan.Axes, p.On))
		lab.Progress = func(_ sweep.Point, r simulate.Round, of int) {
			if r.Number%max(1, of/5) == 0 && r.Number < of {
				fmt.Fprintf(a.Stderr, "%s  round %d/%d\n", head, r.Number, of)
			}
		}
		lab.Begin = func(_ sweep.Point, done int, others []string) { sayBegin(a.Stderr, head+"  ", done, others) }
		r, done, err := lab.Make(ctx, p, filepath.Join(f.out, sweep.RunsFolder))
		if errors.Is(err, sweep.ErrCheckpoint) {
			fmt.Fprintf(a.Stderr, "%s  %v\n", head, err)
		} else if err != nil {
			if ctx.Err() != nil {
				fmt.Fprintln(a.Stderr, "interrupted: the same command goes on from here")
			}
			var disk *fs.PathError
			if ctx.Err() != nil || errors.Is(err, sweep.ErrOther) || errors.Is(err, simulate.ErrState) || errors.As(err, &disk) {
				// What the next runs would meet too.
				return fmt.Errorf("%s: %w", sweep.Place(plan.Axes, p.On), err)
			}
			if errors.Is(err, sweep.ErrBusy) {
				out.Busy++
				fmt.Fprintf(a.Stderr, "%s  another process is making it\n", head)
				continue
			}
			failed, kept := lab.KeepFailure(p, filepath.Join(f.out, sweep.RunsFolder), err)
			if kept != nil {
				return fmt.Errorf("%s: %w", sweep.Place(plan.Axes, p.On), errors.Join(err, kept))
			}
			out.Failed = append(out.Failed, failed)
			fmt.Fprintf(a.Stderr, "%s  failed: %v\n", head, err)
			continue
		}
		if err := sweep.KeepTable(f.out); err != nil {
			return err
		}
		note := fmt.Sprintf("%.0f s", r.Seconds)
		if done {
			out.Before++
			note = "done before"
		} else {
			out.Made++
		}
		left := ""
		if out.Made > 0 {
			each := time.Since(began) / time.Duration(out.Made)
			left = fmt.Sprintf(", about %s left", (each * time.Duration(len(plan.Points)-len(before)-out.Made-len(out.Failed)-out.Busy)).Round(time.Second))
		}
		fmt.Fprintf(a.Stderr, "%s  %.1f %%  (%s%s)\n", head, 100*r.Accuracy, note, left)
		if !done {
			sayWarnings(a.Stderr, head+"  ", r)
			if limit := r.Limit(); limit != "" {
				fmt.Fprintf(a.Stderr, "%s  %s\n", head, limit)
			}
		}
	}
	err = a.Emit(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d runs made, %d done before: %s\nNext: starling report %s\n", out.Made, out.Before, out.Table, f.out)
		return err
	})
	if out.Busy > 0 {
		fmt.Fprintf(a.Stderr, "%d runs are left to another process that is making them\n", out.Busy)
	}
	if n := len(out.Failed); err == nil && n > 0 {
		err = fmt.Errorf("%d of %d runs failed, the first: %s; the same command tries them again", n, len(plan.Points), out.Failed[0].Error)
	}
	return err
}

// tables reports whether what was given is a folder of presets' tables, and of no sweep.
func tables(args []string) bool {
	if len(args) != 1 {
		return false
	}
	if _, err := os.Stat(filepath.Join(args[0], sweep.IndexFile)); err == nil {
		return false
	}
	return slices.ContainsFunc(sweep.Presets(), func(name string) bool {
		_, err := os.Stat(filepath.Join(args[0], name+".csv"))
		return err == nil
	})
}

func newReportCmd(a *command.App) *cobra.Command {
	var out, interval string
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Make tables and plots of a sweep, and say which of its runs are missing",
		Long: `Read a sweep's folder and write report.html (one file that opens without a network),
tables.tex, and every plot as SVG, PDF, PNG and LaTeX (pgfplots) with 95 % t intervals: means and spreads over seeds, paired
differences with intervals and t tests that are corrected by Holm, privacy and bytes against utility. A sweep
that is not done yet is reported as far as it is, with the runs that failed and those that are missing.
Several folders are one sweep that several machines made. Of a folder of presets' tables (docs/reproduction) it says
which runs of each preset are there.`,
		Example: "  starling report methods\n  starling report methods methods-of-the-other-machine --out both\n  starling report docs/reproduction",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("want the folder of a sweep, got no argument")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			made, err := grids.ParseInterval(interval)
			if err != nil {
				return usage.Errorf("--interval is %.40q, must be t, or bca (bootstrap, with ten seeds or more)", interval)
			}
			if tables(args) {
				all, err := grids.Progress(os.DirFS(args[0]))
				if err != nil {
					return err
				}
				return a.Emit(all, func(w io.Writer) error { return grids.PrintProgress(w, all) })
			}
			r, err := grids.New(made, args...)
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(args[0], "report")
			}
			paths, err := r.Write(out)
			if err != nil {
				return err
			}
			return a.Emit(r, func(w io.Writer) error { return r.Print(w, paths) })
		},
	}
	cmd.Flags().StringVar(&interval, "interval", "t", "95 % intervals of differences: t, or bca (bootstrap, with ten seeds or more)")
	cmd.Flags().StringVar(&out, "out", "", "folder of the report (default: DIR/report)")
	return cmd
}
