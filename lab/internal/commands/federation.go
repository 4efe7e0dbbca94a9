package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/files"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/lab/federation"
)

// Files of a federation's folder.
const (
	federationTrain   = "train.jsonl"
	federationTest    = "test.jsonl"
	federationClients = "clients.json"
)

type federationReport struct {
	Folder  string             `json:"folder"`
	Clients []federationClient `json:"clients"`
	Held    int                `json:"validation_questions"`
	Test    map[string]int     `json:"test_questions"` // by source
}

type federationClient struct {
	Name      string `json:"name"`
	Questions int    `json:"questions"`
}

func newFederationCmd(a *command.App) *cobra.Command {
	var c federation.Config
	var out, clients string
	c.Seed = 1
	cmd := &cobra.Command{
		Use:   "federation --out DIR {--wtq DIR --tabfact DIR --sroie FILE | --generated N}",
		Short: "Put published sets of document questions together as the clients of one federation",
		Long: `Reads WikiTableQuestions, TabFact and SROIE as their publishers left them, deals the
documents of each out among clients of its own, and writes what 'starling simulate' reads:
the questions with the words' places (a table's cells stand on a grid), which client has
which, and a file of test questions. One document in ten belongs to no client: validation
chooses on them. Scores are stated for each set, and their mean.

--generated makes sets of the same kinds: tables whose cells are asked for, tables with
statements that are answered yes or no, and invoices.`,
		Example: `  starling lab federation --out fed --wtq wtq --tabfact tabfact --sroie sroie --clients 1,5,4
  starling simulate --base model/base/documents --data fed/train.jsonl --partition fed/clients.json --test fed/test.jsonl \
    --population 10 --cohort 4 --set cohort.sampling=fixed --set shard.corrupt=0 --set privacy.none=true`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usage.Errorf("--out is required: the folder to write to")
			}
			var err error
			if c.Clients, err = clientsOf(clients, c); err != nil {
				return err
			}
			f, err := federation.New(c)
			if err != nil {
				return usage.Wrap(err)
			}
			if c.Pages {
				for _, s := range []*dataset.Set{f.Train, f.Test} {
					if err := files.WritePages(s, filepath.Join(out, "pages")); err != nil {
						return err
					}
				}
			}
			r, err := writeFederation(out, f)
			if err != nil {
				return err
			}
			return a.Emit(r, r.print)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "", "folder to write to")
	fl.StringVar(&c.WikiTables, "wtq", "", "folder of WikiTableQuestions")
	fl.StringVar(&c.TabFact, "tabfact", "", "folder of TabFact")
	fl.StringVar(&c.Receipts, "sroie", "", "SROIE's receipts in JSON Lines, or their folder")
	fl.IntVar(&c.Generated, "generated", 0, "make so many documents of each set instead: tables with questions, tables with statements, invoices")
	fl.BoolVar(&c.Pages, "pages", false, "pictures of the pages, drawn of their words, in the folder pages")
	fl.StringVar(&clients, "clients", "", "clients of WikiTableQuestions, TabFact and SROIE, or of the generated sets: three numbers (default one of each that is given)")
	fl.IntVar(&c.Documents, "documents", 0, "most documents of each set to learn from (default all)")
	fl.IntVar(&c.TestDocuments, "test-documents", 0, "most documents of each set to score (default all)")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the deal")
	return cmd
}

// clientsOf reads --clients.
func clientsOf(text string, c federation.Config) (n [3]int, err error) {
	if text == "" {
		for i, folder := range []string{c.WikiTables, c.TabFact, c.Receipts} {
			if folder != "" || c.Generated > 0 {
				n[i] = 1
			}
		}
		return n, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) != len(n) {
		return n, usage.Errorf("--clients is %q, want three numbers, as 1,5,4", text)
	}
	for i, p := range parts {
		if n[i], err = strconv.Atoi(strings.TrimSpace(p)); err != nil || n[i] < 0 || n[i] > 1<<16 {
			return n, usage.Errorf("--clients is %q, want three numbers of 0 to %d", text, 1<<16)
		}
	}
	return n, nil
}

func writeFederation(out string, f *federation.Federation) (federationReport, error) {
	r := federationReport{Folder: out, Test: map[string]int{}}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return r, err
	}
	if err := files.WriteJSONLines(filepath.Join(out, federationTrain), f.Train); err != nil {
		return r, err
	}
	if err := files.WriteJSONLines(filepath.Join(out, federationTest), f.Test); err != nil {
		return r, err
	}
	held := len(f.Train.Examples)
	for i, mine := range f.Clients {
		r.Clients = append(r.Clients, federationClient{f.Names[i], len(mine)})
		held -= len(mine)
	}
	r.Held = held
	for _, e := range f.Test.Examples {
		r.Test[e.Source]++
	}
	b, err := json.Marshal(f.Clients)
	if err != nil {
		return r, err
	}
	return r, durable.Replace(filepath.Join(out, federationClients), append(b, '\n'), 0o644)
}

func (r federationReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%d clients in %s\n", len(r.Clients), r.Folder)
	for _, c := range r.Clients {
		fmt.Fprintf(w, "  %-15s %6d questions\n", c.Name, c.Questions)
	}
	fmt.Fprintf(w, "  %-15s %6d questions\n", "validation", r.Held)
	for _, name := range slices.Sorted(maps.Keys(r.Test)) {
		fmt.Fprintf(w, "  %-15s %6d questions\n", "test "+name, r.Test[name])
	}
	at := func(name string) string { return filepath.Join(r.Folder, name) }
	_, err := fmt.Fprintf(w, "\nNext:  starling simulate --base DIR --data %s --partition %s --test %s --population %d --cohort %d --set cohort.sampling=fixed\n",
		at(federationTrain), at(federationClients), at(federationTest), len(r.Clients), max(2, len(r.Clients)/3))
	return err
}
