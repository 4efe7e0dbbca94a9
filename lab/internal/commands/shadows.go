package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/internal/app/exposure"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/lab/sweep"
)

type shadowsFlags struct {
	simulateFlags
	shadows int
	by      string
}

// Folders of what it makes.
const (
	shadowsTarget = "target"
	shadowsOthers = "shadows"
)

// shadowsReport says where everything lies.
type shadowsReport struct {
	By      string   `json:"by"`
	People  int      `json:"people"`
	Target  string   `json:"target"`  // checkpoint
	Members string   `json:"members"` // their names
	Folder  string   `json:"shadows,omitempty"`
	Shadows int      `json:"shadow_models"`
	Runs    []string `json:"runs"`

	data string
}

func newShadowsCmd(a *command.App) *cobra.Command {
	f := shadowsFlags{simulateFlags: simulateFlags{settings: sweep.DefaultSettings(), engine: plugins.Flags()}}
	f.settings.Population, f.settings.SamplingRate, f.settings.Cohort, f.settings.Every = 0, 1, 0, 0
	cmd := &cobra.Command{
		Use:   "shadows --out DIR --data FILE --test FILE",
		Short: "Simulate a job with a random half of the providers, and shadow models of other halves, for audits",
		Long: `Simulate one job several times: once with providers (or users) that are each in or out
by a fair coin, the target, and as often as --shadows says with each in a random half of
the runs. 'starling audit membership' and 'audit epsilon' then attack the target, by
the likelihood ratio of the shadows (Carlini et al. 2022). Each member is a client of its
own, or with --population they are dealt out among so many. --test is of nobody among
them: validation and accuracies are of it.

An interrupted command goes on where it was when it is given again.`,
		Example: `  starling shadows --out audit --data train.jsonl --test test.jsonl --shadows 4 --rounds 8 --set privacy.none=true
  starling audit membership --checkpoint audit/target/ID/checkpoint --data queries.jsonl --in audit/target/ID/members.json --shadows audit/shadows`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runShadows(cmd.Context(), a, f, cmd.Flags().Changed)
		},
	}
	fl, s := cmd.Flags(), &f.settings
	f.addRun(fl)
	fl.Lookup("population").Usage = "clients among whom the members are dealt; 0: each is one"
	fl.StringVar(&s.Data, "data", "", "labelled file of all providers or users (required)")
	fl.StringVar(&s.Test, "test", "", "labelled file of others, to validate and score on (required)")
	fl.StringVar(&f.by, "by", "", "who is in or out: provider or user (default: the first that the file names)")
	fl.IntVar(&f.shadows, "shadows", 4, "shadow models; 0: the target alone, for audit epsilon")
	fl.StringVar(&f.out, "out", "", "folder for the runs (required)")
	return cmd
}

// mostShadowRuns bounds --shadows.
const mostShadowRuns = 256

func runShadows(ctx context.Context, a *command.App, f shadowsFlags, given func(string) bool) (err error) {
	switch {
	case f.out == "" || f.settings.Data == "" || f.settings.Test == "":
		return usage.Errorf("--out, --data and --test are required")
	case f.shadows < 0 || f.shadows > mostShadowRuns:
		return usage.Errorf("--shadows %d, want 0 to %d", f.shadows, mostShadowRuns)
	case f.by == exposure.ByExample:
		return usage.Errorf("--by example: want provider or user, as the file names them")
	}
	d, err := newShadowData(f)
	if err != nil {
		return err
	}
	lab, end, err := openLab(a, f.base, f.workers, f.engine, f.columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	lab.Data = d.get
	r := shadowsReport{By: d.people.By, People: len(d.names), Shadows: f.shadows, data: f.settings.Data}
	if f.shadows > 0 {
		r.Folder = filepath.Join(f.out, shadowsOthers)
	}
	for k := range d.in {
		run := f
		run.settings.Seed += uint64(k)
		if run.settings.Population == 0 {
			run.settings.Population = len(d.members(k))
		}
		s, err := run.resolve(given)
		if err != nil {
			return err
		}
		if err := lab.Check(s); err != nil {
			return err
		}
		folder, what := filepath.Join(f.out, shadowsTarget), "target"
		if k > 0 {
			folder, what = r.Folder, fmt.Sprintf("shadow %d of %d", k, f.shadows)
		}
		if k == 0 {
			bases.SayTask(a.Stderr, s.NamesTask(), lab.Base)
		}
		if err := settleArithmetic(a.Stderr, lab, folder, &s); err != nil {
			return err
		}
		if err := named.MakeDir(folder); err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "%s: %d of %d %ss, %d clients\n", what, len(d.members(k)), len(d.names), r.By, s.Population)
		view := &simulateView{w: a.Stderr}
		lab.Progress = view.show
		id, err := lab.ID(s)
		if err != nil {
			return err
		}
		if _, _, err := lab.Make(ctx, sweep.Point{Settings: s}, folder); err != nil {
			if ctx.Err() != nil {
				fmt.Fprintln(a.Stderr, "interrupted: the same command goes on from here")
			}
			return err
		}
		path := filepath.Join(folder, id)
		text, err := json.Marshal(d.members(k))
		if err != nil {
			return err
		}
		if err := durable.Replace(filepath.Join(path, exposure.ShadowMembers), append(text, '\n'), 0o644); err != nil {
			return err
		}
		r.Runs = append(r.Runs, path)
	}
	if err := r.alone(); err != nil {
		return err
	}
	r.Target, r.Members = filepath.Join(r.Runs[0], exposure.ShadowCheckpoint), filepath.Join(r.Runs[0], exposure.ShadowMembers)
	return a.Emit(r, r.print)
}

// alone refuses shadows beside those of this command: of other settings or data, they would be
// taken for them.
func (r *shadowsReport) alone() error {
	if r.Folder == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(r.Folder, "*", exposure.ShadowMembers))
	if err != nil {
		return err
	}
	for _, path := range found {
		if !slices.Contains(r.Runs, filepath.Dir(path)) {
			return fmt.Errorf("%s is a shadow of other settings: give another --out, or remove it", filepath.Dir(path))
		}
	}
	return nil
}

func (r shadowsReport) print(w io.Writer) error {
	more := ""
	if r.Folder != "" {
		more = " --shadows " + r.Folder
	}
	_, err := fmt.Fprintf(w, "%d %ss, each in or out by a coin; %d shadow models\nNext:  starling audit membership --checkpoint %s --data %s --in %s%s\n",
		r.People, r.By, r.Shadows, r.Target, r.data, r.Members, more)
	return err
}

// shadowData are the data of the runs, by their seeds.
type shadowData struct {
	people    *exposure.People
	all, test *dataset.Set
	name, sum string   // of the file
	names     []string // in the order of the file
	of        []int    // by example: whose it is
	in        [][]bool // by run, the target first
	seed      uint64
	clients   int // among whom members are dealt; 0: each is one
}

func newShadowData(f shadowsFlags) (*shadowData, error) {
	d := &shadowData{seed: f.settings.Seed, clients: f.settings.Population}
	files := labData{columns: f.columns}
	all, err := files.file(f.settings.Data)
	if err != nil {
		return nil, err
	}
	test, err := files.file(f.settings.Test)
	if err != nil {
		return nil, err
	}
	d.all = all.all
	if d.test, err = test.all.Relabel(d.all.Labels); err != nil {
		return nil, err
	}
	d.name = all.name
	sum := sha256.Sum256([]byte(all.sha256 + "\n" + test.sha256 + "\n"))
	d.sum = hex.EncodeToString(sum[:])
	if d.people, err = exposure.Among(d.all, nil, f.by); err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, who := range d.people.Owner {
		i, known := at[who]
		if !known {
			i = len(d.names)
			at[who], d.names = i, append(d.names, who)
		}
		d.of = append(d.of, i)
	}
	target, shadows := membership.Design(len(d.names), f.shadows, d.seed)
	d.in = append([][]bool{target}, shadows...)
	for k := range d.in {
		if n := len(d.members(k)); n < 2 || d.clients > n {
			return nil, fmt.Errorf("%s: of %d %ss %d are members of run %d, want at least 2, and one for each of %d clients",
				f.settings.Data, len(d.names), d.people.By, n, k, d.clients)
		}
	}
	return d, nil
}

// members are the names of those in a run.
func (d *shadowData) members(run int) (names []string) {
	for i, in := range d.in[run] {
		if in {
			names = append(names, d.names[i])
		}
	}
	return names
}

// get is sweep.Lab.Data: the run follows from the seed.
func (d *shadowData) get(of sweep.Source) (*sweep.Data, error) {
	run := int(of.Seed - d.seed)
	if run < 0 || run >= len(d.in) {
		return nil, fmt.Errorf("seed %d is of no run", of.Seed)
	}
	client, n := map[int]int{}, 0 // by member
	for i, in := range d.in[run] {
		if in {
			if client[i] = n; d.clients > 0 {
				client[i] = n % d.clients
			}
			n++
		}
	}
	if d.clients > 0 {
		n = d.clients
	}
	var mine []int
	parts := make([][]int, n)
	for at, who := range d.of {
		if k, in := client[who]; in {
			parts[k] = append(parts[k], len(mine))
			mine = append(mine, at)
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%d", d.sum, d.members(run), d.clients))
	return &sweep.Data{Name: d.name, SHA256: hex.EncodeToString(sum[:]), Labels: d.all.Labels, Train: d.all.Pick(mine), Clients: parts,
		Validation: d.test, Test: d.test}, nil
}
