package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/lab/bandwidth"
	"github.com/starling-fl/starling/quant"
)

type bandwidthFlags struct {
	bandwidth.Config
	columns         dataset.Columns
	preset          string
	stands          bandwidth.Preset
	schemes, codecs []string
	ranks           []int
	params          int
	train           bool
	base, data      string
	alpha           float64
	epsilon, rate   float64
	csv, plot       string
	seed            uint64
}

func newBandwidthCmd(a *command.App) *cobra.Command {
	var f bandwidthFlags
	cmd := &cobra.Command{
		Use:   "bandwidth",
		Short: "Measure each quantization scheme's bytes on the wire and its error",
		Long: `Run real rounds for each scheme, codec and rank - a coordinator and a fleet of
devices in this process, joined by real sockets - and count every byte where it
crosses the devices' sockets, keys and framing included. Beside the bytes stands
the error of the mean update, before noise, and its energy relative to that of
the noise that differential privacy adds anyway.

Masked schemes run the whole protocol. Schemes without a mask are there for
comparison: the service has no mode that sends an update in the clear.

Updates are drawn at random for --params values, or trained with --train on the
base model and your data.`,
		Example: `  starling bandwidth
  starling bandwidth --schemes nf4,int4,int5 --masked-only --params 135176 --cohort 64 --shard 64
  starling bandwidth --train --data reviews.jsonl.gz --ranks 1,4,8
  starling bandwidth --preset docvqa-winner
  starling bandwidth --preset dp-dylora --csv dylora.csv --plot dylora`,
		Args: command.NoArgs,
	}
	fl := cmd.Flags()
	var maskedOnly, clearOnly bool
	fl.StringVar(&f.preset, "preset", "", "docvqa-winner: the PFL-DocVQA competition's winner; dp-dylora: BERT-small at several ranks")
	command.Values(cmd, "preset", "docvqa-winner", "dp-dylora")
	fl.StringSliceVar(&f.schemes, "schemes", nil, "masked and unmasked schemes by name, or masked:NAME, clear:NAME; default all")
	fl.BoolVar(&maskedOnly, "masked-only", false, "masked schemes only")
	fl.BoolVar(&clearOnly, "clear-only", false, "schemes without a mask only")
	fl.StringSliceVar(&f.codecs, "codecs", []string{"none", "zstd"}, "byte codecs of what is not masked: none, snappy, s2, zstd, or all")
	fl.IntVar(&f.params, "params", 135_176, "values in an update, where nothing is trained")
	fl.IntSliceVar(&f.ranks, "ranks", nil, "LoRA ranks, with --train or --preset dp-dylora; default 8, or the preset's")
	fl.BoolVar(&f.train, "train", false, "take updates from local training on --base and --data")
	fl.StringVar(&f.base, "base", "", "with --train: model folder; default the embedded base")
	fl.StringVar(&f.data, "data", "", "with --train: labelled file, see starling demo; default generated invoices")
	command.ColumnFlags(fl, &f.columns)
	fl.Float64Var(&f.alpha, "alpha", 1, "with --data: Dirichlet concentration over devices where the file names no users")
	fl.IntVar(&f.Cohort, "cohort", 64, "devices in a round")
	fl.IntVar(&f.Shard, "shard", 64, "largest shard, from which the ring's width follows")
	fl.IntVar(&f.Rounds, "rounds", 3, "rounds to measure; the first sends a seed down, later ones the adapter")
	fl.IntVar(&f.JobRounds, "job-rounds", 200, "rounds of the job that totals are for")
	fl.StringVar(&f.Downlink, "downlink", "bf16", "format of the adapter on its way down, with masked schemes; without a mask it is the scheme's")
	fl.Float64Var(&f.Clip, "clip", 1, "L2 clip norm")
	fl.Float64Var(&f.OwnNoise, "own-noise", 0, "masked: what each device adds to its update itself, a standard deviation over the clip norm")
	fl.Float64Var(&f.epsilon, "epsilon", 2, "the noise that errors are compared with is that of this epsilon at delta 1e-6 over --job-rounds")
	fl.Float64Var(&f.rate, "sampling-rate", 0.01, "the noise that errors are compared with is that of this sampling rate")
	fl.StringVar(&f.csv, "csv", "", "also write the rows to this file")
	fl.StringVar(&f.plot, "plot", "", "also plot error against bits: NAME.svg and NAME.png")
	fl.Uint64Var(&f.seed, "seed", 1, "with --train: seed of generated data and splits")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.apply(cmd.Flags()); err != nil {
			return err
		}
		schemes, err := f.chosen(maskedOnly, clearOnly)
		if err != nil {
			return err
		}
		return runBandwidth(cmd.Context(), a, f, schemes)
	}
	return cmd
}

// apply sets what a preset stands for, except where a flag was given.
func (f *bandwidthFlags) apply(fl *pflag.FlagSet) (err error) {
	if f.stands, err = bandwidth.LookupPreset(f.preset); err != nil {
		return asFlag(err)
	}
	for name, value := range f.stands.Flags {
		if !fl.Changed(name) {
			err = errors.Join(err, fl.Set(name, value))
		}
	}
	return err
}

// chosen resolves --schemes and the two restrictions.
func (f *bandwidthFlags) chosen(maskedOnly, clearOnly bool) ([]bandwidth.Scheme, error) {
	if maskedOnly && clearOnly {
		return nil, usage.Errorf("--masked-only and --clear-only exclude each other")
	}
	all := bandwidth.Schemes()
	var out []bandwidth.Scheme
	for _, c := range all {
		if c.Masked && clearOnly || !c.Masked && maskedOnly {
			continue
		}
		if len(f.schemes) == 0 || slices.Contains(f.schemes, c.Name) || slices.Contains(f.schemes, c.String()) {
			out = append(out, c)
		}
	}
	for _, want := range f.schemes {
		if !slices.ContainsFunc(all, func(c bandwidth.Scheme) bool { return c.Name == want || c.String() == want }) {
			return nil, usage.Errorf("--schemes: no scheme %q; masked: %s; without a mask: %s", want,
				strings.Join(quant.SchemeNames(), ", "), strings.Join(quant.FormatNames(), ", "))
		}
	}
	if len(out) == 0 {
		return nil, usage.Errorf("--schemes leaves nothing to measure")
	}
	return out, nil
}

// validate names the first flag that cannot be, of those that the measurement
// does not know.
func (f *bandwidthFlags) validate() error {
	if slices.Equal(f.codecs, []string{"all"}) {
		f.codecs = quant.CodecNames()
	}
	for _, c := range f.codecs {
		if _, err := quant.LookupCodec(c); err != nil || c == "" {
			return usage.Errorf("--codecs: no codec %q; there are %s", c, strings.Join(quant.CodecNames(), ", "))
		}
	}
	switch {
	case f.params < 32 || f.params > quant.MaxDimension:
		return usage.Errorf("--params is %d, want 32..%d", f.params, quant.MaxDimension)
	case !(f.rate > 0 && f.rate <= 1):
		return usage.Errorf("--sampling-rate is %v, want above 0, at most 1", f.rate)
	case !(f.epsilon > 0):
		return usage.Errorf("--epsilon is %v, must be positive", f.epsilon)
	case !f.train && (f.base != "" || f.data != ""):
		return usage.Errorf("--base and --data need --train")
	case !f.train && !f.stands.Adapters && len(f.ranks) > 0:
		return usage.Errorf("--ranks needs --train or --preset dp-dylora")
	}
	for _, r := range f.ranks {
		if r < 1 || r > 1024 {
			return usage.Errorf("--ranks: %d, want 1..1024", r)
		}
	}
	if f.JobRounds < 1 {
		return usage.Errorf("--job-rounds is %d, must be positive", f.JobRounds)
	}
	z, err := accounting.CalibrateNoise(f.epsilon, bandwidthDelta, f.rate, f.JobRounds, dp.Tight)
	if err != nil {
		return err
	}
	f.NoiseMultiplier = z
	return asFlag(f.Config.Validate())
}

// asFlag names a setting by its flag.
func asFlag(err error) error {
	if s := new(bandwidth.SettingError); errors.As(err, &s) {
		return usage.Errorf("--%s: %w", s.Setting, s.Err)
	}
	return err
}

func runBandwidth(ctx context.Context, a *command.App, f bandwidthFlags, schemes []bandwidth.Scheme) error {
	if err := f.validate(); err != nil {
		return err
	}
	r := &bandwidth.Report{Preset: f.preset, Cohort: f.Cohort, Shard: f.Shard, Rounds: f.Rounds, JobRounds: f.JobRounds,
		NoiseMultiplier: f.NoiseMultiplier, Epsilon: f.epsilon, Delta: bandwidthDelta, SamplingRate: f.rate, Published: f.stands.Published}
	sizes, err := f.sizes()
	if err != nil {
		return asFlag(err)
	}
	for _, size := range sizes {
		s, what, err := f.subject(ctx, a, size)
		if err != nil {
			return asFlag(err)
		}
		r.Updates = what
		for _, scheme := range schemes {
			for _, codec := range f.codecs {
				start := time.Now()
				row, err := f.Measure(ctx, s, scheme, codec)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.Stderr, "%-14s %-6s %9d values: %6.3f bits up, %.1f s\n", scheme, codec, row.Params, row.Bits,
					time.Since(start).Seconds())
				r.Rows = append(r.Rows, row)
			}
		}
	}
	if err := f.files(r); err != nil {
		return err
	}
	return a.Emit(r, r.Print)
}

// bandwidthDelta is the delta that --epsilon is stated with.
const bandwidthDelta = 1e-6

// sizes are the lengths to measure; trained ones are known later.
func (f *bandwidthFlags) sizes() ([]bandwidth.Size, error) {
	switch {
	case f.train:
		var out []bandwidth.Size
		for _, r := range f.ranks {
			out = append(out, bandwidth.Size{Rank: r})
		}
		if len(out) == 0 {
			out = []bandwidth.Size{{Rank: 8}}
		}
		return out, nil
	case f.stands.Adapters:
		return bandwidth.AdapterSizes(f.ranks)
	}
	return []bandwidth.Size{{Params: f.params}}, nil
}

// subject draws or trains the updates of one size.
func (f *bandwidthFlags) subject(ctx context.Context, a *command.App, at bandwidth.Size) (*bandwidth.Subject, string, error) {
	if !f.train {
		s, err := bandwidth.StandIn(at, f.Cohort)
		return s, "drawn at random: one shared direction with 0.6 of the norm, scales that differ between rows", err
	}
	b, err := bases.Load(f.base)
	if err != nil {
		return nil, "", err
	}
	var d *fleetdata.Data
	if f.data == "" {
		d, err = fleetdata.Invoices(f.seed, f.Cohort)
	} else {
		d, err = fleetdata.File{Path: f.data, Columns: f.columns, Seed: f.seed, Clients: f.Cohort, Alpha: f.alpha}.Load()
	}
	if err != nil {
		return nil, "", err
	}
	fmt.Fprintf(a.Stderr, "rank %d: training one round on %d devices of %s\n", at.Rank, f.Cohort, d.Name)
	s, err := bandwidth.Trained(ctx, b, d.Labels, d.Clients, at.Rank)
	return s, fmt.Sprintf("one round of local training on %s", d.Name), err
}

// files writes what --csv and --plot ask for.
func (f *bandwidthFlags) files(r *bandwidth.Report) error {
	files := map[string]func(io.Writer) error{}
	if f.csv != "" {
		files[f.csv] = r.WriteCSV
	}
	if f.plot != "" {
		for _, format := range []string{"svg", "png"} {
			files[f.plot+"."+format] = func(w io.Writer) error { return r.Plot(w, format) }
		}
	}
	for path, write := range files {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := named.MakeDir(filepath.Dir(path)); err != nil {
			return err
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil { // a pipe, too
			return named.Wrap(err)
		}
	}
	return nil
}
