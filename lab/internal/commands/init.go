package commands

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/lab/prospect"
	"github.com/starling-fl/starling/lab/sweep"
)

// initFlags are the command's.
type initFlags struct {
	prospect.Fleet
	data, base, out, trials string
	columns                 dataset.Columns
	epsilon                 float64
	seed                    uint64
	limit                   time.Duration
	workers                 int
	engine                  engine.Flags
	force, untried          bool
}

func newInitCmd(a *command.App) *cobra.Command {
	f := initFlags{engine: plugins.Flags()}
	cmd := &cobra.Command{
		Use:   "init --data FILE --devices N",
		Short: "Write a job file for a fleet, and simulate on your data which epsilon it can afford",
		Long: `Read a labelled file, find its columns and labels, and write a job file for a fleet of
devices that hold such data. Before that the fleet is simulated on the file, without noise
and at several epsilons, by each mechanism: the table says what accuracy each would come to,
and how long the noise is beside the signal. Where no epsilon leaves anything, 3 rounds are
tried as well, which need less noise. At a terminal it asks for what no flag gives.

The file stands for the whole fleet: it is divided over the devices, by user where it names
users, and held out in part to score on. Simulations are kept in --trials: the same command
goes on where it was interrupted. Nothing of the file leaves this machine.`,
		Example: "  starling init --data reviews.csv --devices 40\n  starling init --data reviews.csv --devices 40 --protect-from coordinator --epsilon 8",
		Args:    command.NoArgs,
	}
	fl := cmd.Flags()
	fl.StringVar(&f.data, "data", "", "labelled file like the fleet's: "+dataset.Formats)
	fl.IntVar(&f.Devices, "devices", 0, "devices that may ever take part")
	fl.IntVar(&f.Examples, "examples", 0, "examples of a device, on average (default: the file's, divided over the devices)")
	fl.StringVar(&f.Name, "name", "", "name of the job (default: that of the file)")
	fl.StringVar(&f.Fleet.Task, "task", "", "classify, multilabel, tag, image, listen, transcribe, answer, span, pretrain or causal; default: what the file holds")
	fl.StringVar(&f.base, "base", "", "base folder in Hugging Face layout, or a model's name in the local Hugging Face cache, instead of the embedded default")
	fl.StringVar(&f.From, "protect-from", "public", "public: who sees the model; coordinator: it, too; everyone: each upload is private by itself; nobody: no privacy")
	fl.Float64Var(&f.epsilon, "epsilon", 2, "privacy budget that you would like; 2, 8 and 30 are tried as well")
	fl.IntVar(&f.Rounds, "rounds", 20, "rounds")
	fl.StringVar(&f.out, "out", "job.yaml", "job file to write")
	fl.BoolVar(&f.force, "force", false, "write over a file that is there")
	fl.StringVar(&f.trials, "trials", "starling-init", "folder that keeps the simulations")
	fl.BoolVar(&f.untried, "no-simulation", false, "write the job file alone, for --epsilon, and try nothing")
	fl.DurationVar(&f.limit, "limit", 10*time.Minute, "time for all simulations; what is not tried by then is said, 0: all the time it takes")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the simulations")
	fl.IntVar(&f.workers, "workers", runtime.NumCPU(), "clients that train side by side")
	command.ColumnFlags(fl, &f.columns)
	f.engine.Add(fl)
	command.Values(cmd, "protect-from", "public", "coordinator", "everyone", "nobody")
	command.Headings(fl,
		[]string{"The fleet", "data", "devices", "examples", "name", "task", "base", "rounds", "protect-from", "epsilon"},
		[]string{"The file's columns", "map", "text-column", "label-column", "unlabelled"},
		[]string{"Results", "out", "force", "trials"},
		[]string{"Computing", "limit", "seed", "workers", "engine", "pjrt", "no-simulation"})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if terminal.Is(a.Stdin) {
			if err := f.ask(a.Stdin, a.Stderr, fl.Changed); err != nil {
				return err
			}
		}
		return f.run(cmd.Context(), a)
	}
	return cmd
}

// ask asks for what no flag gave; an empty answer takes what is proposed.
func (f *initFlags) ask(in io.Reader, out io.Writer, given func(string) bool) error {
	lines := bufio.NewScanner(in)
	for _, q := range []struct {
		flag, asks, proposed string
		take                 func(answer string) bool
	}{
		{"data", "Labelled file like the fleet's data", "", func(s string) bool { f.data = s; return true }},
		{"devices", "How many devices may ever take part", "40", func(s string) bool { return whole(s, &f.Devices) }},
		{"examples", "How many examples has one, on average (0: as the file, divided)", "0", func(s string) bool { return whole(s, &f.Examples) }},
		{"base", "Base: a folder or a model's name (empty: the embedded one)", "", func(s string) bool { f.base = s; return true }},
		{"protect-from", "Protect devices from whom: public, coordinator, everyone or nobody", "public", func(s string) bool { f.From = s; return true }},
	} {
		if given(q.flag) {
			continue
		}
		if q.proposed != "" {
			fmt.Fprintf(out, "%s [%s]? ", q.asks, q.proposed)
		} else {
			fmt.Fprintf(out, "%s? ", q.asks)
		}
		if !lines.Scan() {
			return errors.Join(usage.Errorf("--%s: no answer", q.flag), lines.Err())
		}
		answer := cmp.Or(strings.TrimSpace(lines.Text()), q.proposed)
		if !q.take(answer) {
			return usage.Errorf("--%s %.40q: want a whole number", q.flag, answer)
		}
	}
	return nil
}

// whole reads a whole number.
func whole(text string, to *int) bool {
	n, err := strconv.Atoi(text)
	*to = n
	return err == nil
}

func (f *initFlags) run(ctx context.Context, a *command.App) (err error) {
	switch {
	case f.data == "":
		return usage.Errorf("--data is missing: a labelled file like the fleet's data")
	case f.Devices == 0:
		return usage.Errorf("--devices is missing: how many may ever take part")
	case !(f.epsilon > 0 && f.epsilon <= 1000):
		return usage.Errorf("--epsilon is %v, want above 0 and at most 1000; without noise: --protect-from nobody", f.epsilon)
	case f.workers < 1:
		return usage.Errorf("--workers is %d, want 1 or more", f.workers)
	}
	if _, err := os.Stat(f.out); err == nil && !f.force {
		return usage.Errorf("%s is there: --out names another file, --force writes over it", f.out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	set, columns, err := prospect.Load(f.data, f.columns)
	if err != nil {
		return err
	}
	f.columns.Text, f.columns.Label = columns.Text, columns.Label
	if columns.Text != "" || columns.Label != "" {
		fmt.Fprintf(a.Stderr, "%s: %s\n", f.data, prospect.Describe(columns))
	}
	if f.Examples == 0 {
		f.Examples = max(1, len(set.Examples)*8/10/f.Devices)
	}
	f.Labels = set.Labels
	base := filepath.Base(f.data)
	first, _, _ := strings.Cut(base, ".")
	f.Name = cmp.Or(f.Name, first, base)
	if f.Fleet.Base = f.base; f.base != "" {
		if at, err := filepath.Abs(f.base); err == nil && isFolder(at) {
			f.Fleet.Base = at // wherever the job file lies
		}
	}
	lab, end, err := openLab(a, f.base, f.workers, f.engine, f.columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if held := task.For(set.Form()); f.Fleet.Task == "" && held != lab.Base.Config.DefaultTask() {
		f.Fleet.Task = held.String()
	}
	if err := f.Check(); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "%d examples, %d labels; %d devices of about %d examples each\n", len(set.Examples), len(set.Labels), f.Devices, f.Examples)
	if err := f.Fit(lab.Base, set); err != nil {
		return fmt.Errorf("%s: %w", f.data, err)
	}
	if f.untried {
		answer := &prospect.Answer{Fleet: f.Fleet, Data: f.data, Chosen: f.epsilon, Advice: "Nothing was simulated: without --no-simulation it is."}
		if f.From == "nobody" {
			answer.Chosen = 0
		}
		file, err := f.File(answer.Chosen)
		if err != nil {
			return err
		}
		return f.write(a, answer, file, set, columns)
	}
	view := &simulateView{w: a.Stderr}
	lab.Progress = view.show
	lab.Doing = func(what string) { view.slow.begin(a.Stderr, quiet, what) }
	defer view.slow.begin(a.Stderr, 0, "")
	lab.Begin = func(_ sweep.Point, done int, others []string) { sayBegin(a.Stderr, "", done, others) }
	t := prospect.Trial{
		Fleet: f.Fleet, Data: f.data, Epsilon: f.epsilon, Folder: f.trials, Seed: f.seed, Limit: f.limit, Arithmetic: engine.Quickest(),
		Begin: func(rounds int, epsilon float64, from string) {
			view.slow.begin(a.Stderr, 0, "")
			view.headed = false
			if epsilon == 0 {
				fmt.Fprintf(a.Stderr, "simulating %d rounds without noise\n", rounds)
			} else {
				fmt.Fprintf(a.Stderr, "simulating %d rounds at epsilon %g, devices protected from %s\n", rounds, epsilon, from)
			}
		},
	}
	answer, file, err := t.Run(ctx, lab)
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(a.Stderr, "interrupted: the same command goes on from here")
		}
		return asFlags(err)
	}
	return f.write(a, answer, file, set, columns)
}

// write writes the job file, unless too little was tried: the same command then goes on, and may write.
func (f *initFlags) write(a *command.App, answer *prospect.Answer, file string, set *dataset.Set, columns dataset.Columns) error {
	answer.Held, answer.Columns, answer.File = len(set.Examples), prospect.Describe(columns), f.out
	if !answer.Partial {
		if err := durable.Replace(f.out, []byte(file), 0o644); err != nil {
			return err
		}
	}
	return a.Emit(answer, answer.Print)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
