package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/fleetdata"
	"github.com/starling-fl/starling/internal/named"
)

type invoicesReport struct {
	Files     []string `json:"files"`
	Examples  int      `json:"examples"`
	Labels    []string `json:"labels"`
	Generator string   `json:"generator"`
	// Of questions: how often each key is asked for, and how many providers the training split knows and does not.
	Asked     map[string]int `json:"asked,omitempty"`
	Providers *met           `json:"providers,omitempty"`
	Members   string         `json:"members,omitempty"` // the file that names the known ones
}

type met struct {
	Seen   int `json:"seen"`
	Unseen int `json:"unseen"`
}

func newInvoicesCmd(a *command.App) *cobra.Command {
	var cfg dataset.InvoiceConfig
	var out string
	var questions bool
	var documents, train dataset.DocumentConfig
	cmd := &cobra.Command{
		Use:   "invoices --out DIR",
		Short: "Write generated invoices as data files, one a client, to try things with",
		Long: `Write generated OCR-like invoices with an 8-class label as JSON Lines, one file
a client. Providers are never shared between clients or splits, so the files
stand for devices that hold different private data. With --questions they are
documents as a scanner reads them, words with boxes, each with a question and its
answer, for task answer and the embedded base for documents; with --pages beside
pictures of their pages, for a base that looks at them. A document of several pages
(--sheets) is several lines, each asked for what stands on it.

With --seen a share of the documents is from providers of the training split, as
published test sets have it. The split red, which attacks ask about, has other
documents, one half of those providers, one of the test split's. Both name the former
in members.json, which starling audit takes as --in: those of whom a training split
has documents that was made with the same flags but --train-clients and
--train-per-client.`,
		Example: "  starling invoices --out data --clients 4\n  starling invoices --out data --split test --clients 40 --per-client 8\n" +
			"  starling invoices --questions --identifiers --split red --asked 'sender=2,tax number=1' --out red",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return command.Usagef("--out is required: the folder to write to")
			}
			if questions {
				if documents.Sheets < 1 {
					return command.Usagef("--sheets is %d, want 1 to %d", documents.Sheets, dataset.MaxSheets)
				}
				d := &documents
				d.Seed, d.Split, d.Clients, d.PerClient, d.Providers = cfg.Seed, cfg.Split, cfg.Clients, cfg.PerClient, cfg.Providers
				return writeQuestions(a, *d, train, out)
			}
			if cfg.Split == dataset.RedSplit {
				return command.Usagef("--split %s needs --questions: it is of documents", cfg.Split)
			}
			for _, name := range ofQuestions {
				if cmd.Flags().Changed(name) {
					return command.Usagef("--%s needs --questions: it is about documents, not about texts with labels", name)
				}
			}
			set, err := dataset.Invoices(cfg)
			if err != nil {
				return command.Usage(err)
			}
			if err := onlyThese(set, out, cfg.Split); err != nil {
				return err
			}
			return writeInvoices(a, set, invoicesReport{Generator: dataset.GeneratorVersion}, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the files")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 1, "seed of the generator")
	cmd.Flags().StringVar(&cfg.Split, "split", "train", "train, validation or test, with --questions also red")
	cmd.Flags().IntVar(&cfg.Clients, "clients", 4, "clients, one file each")
	cmd.Flags().IntVar(&cfg.PerClient, "per-client", fleetdata.InvoicesPerClient, "documents of a client")
	cmd.Flags().IntVar(&cfg.Providers, "providers", 0, "providers that bill one client (0: 6, with --questions 4)")
	cmd.Flags().BoolVar(&questions, "questions", false, "documents with questions instead of texts with labels")
	cmd.Flags().BoolVar(&documents.Pages, "pages", false, "with --questions: pictures of the pages, with the provider's logo, in the folder pages")
	cmd.Flags().Float64Var(&documents.Noise, "ocr-noise", 0, "with --questions: share of letters and digits that are read as others; pictures and answers have what is printed")
	cmd.Flags().BoolVar(&documents.Unnamed, "unnamed", false, "with --questions: the sender's name is printed nowhere: its logo alone tells it")
	cmd.Flags().BoolVar(&documents.Identifiers, "identifiers", false, "with --questions: providers have a tax number and a registration id, in half of their documents")
	cmd.Flags().IntVar(&documents.Sheets, "sheets", 1, fmt.Sprintf("with --questions: the most pages of a document, 1 to %d", dataset.MaxSheets))
	cmd.Flags().Float64Var(&documents.Seen, "seen", 0, "with --questions: share of documents of the training split's providers; red has a half")
	cmd.Flags().IntVar(&train.Clients, "train-clients", 0, "with --questions: clients of the training split's run, for members.json (0: as --clients)")
	cmd.Flags().IntVar(&train.PerClient, "train-per-client", 0, "with --questions: documents of each of them (0: as --per-client)")
	cmd.Flags().StringToIntVar(&documents.Asked, "asked", nil, "with --questions: how often which key is asked for, in proportions: number, date, due, customer, total, sender, tax number, registration id; one that is not named never")
	return cmd
}

// ofQuestions are the flags about documents alone.
var ofQuestions = []string{"identifiers", "pages", "ocr-noise", "unnamed", "sheets", "seen", "asked", "train-clients", "train-per-client"}

func writeQuestions(a *command.App, cfg, train dataset.DocumentConfig, out string) error {
	set, err := dataset.Documents(cfg)
	if err != nil {
		return command.Usage(err)
	}
	if err := onlyThese(set, out, cfg.Split); err != nil {
		return err
	}
	if cfg.Pages {
		if err := dataset.WritePages(set, filepath.Join(out, pagesFolder)); err != nil {
			return err
		}
	}
	r := invoicesReport{Generator: dataset.DocumentsVersion, Asked: map[string]int{}}
	of := map[string]bool{}
	for _, e := range set.Examples {
		r.Asked[e.Key]++
		of[e.Provider] = true
	}
	training := set
	if cfg.Split != dataset.TrainSplit {
		if training, err = trainingOf(cfg, train); err != nil {
			return err
		}
	}
	seen := dataset.SeenProviders(set, training)
	r.Providers = &met{len(seen), len(of) - len(seen)}
	if err := command.EnsureDir(out); err != nil {
		return err
	}
	members := filepath.Join(out, "members.json")
	if err := os.Remove(members); err != nil && !errors.Is(err, fs.ErrNotExist) { // another run's name others
		return err
	}
	if len(seen) > 0 && cfg.Split != dataset.TrainSplit {
		names, err := json.Marshal(seen)
		if err != nil {
			return err
		}
		r.Members = members
		if err := os.WriteFile(r.Members, append(names, '\n'), 0o644); err != nil { // as the files that name all of them
			return err
		}
	} else if cfg.Split == dataset.RedSplit {
		fmt.Fprintf(a.Stderr, "note: no member: a training split of %d clients with %d documents each has none of the %d providers; "+
			"make more documents here or there (--per-client, --train-clients, --train-per-client)\n", cmp.Or(train.Clients, cfg.Clients), cmp.Or(train.PerClient, cfg.PerClient), len(of))
	}
	return writeInvoices(a, set, r, out)
}

// trainingOf is the training split of whose providers a set that cfg makes has some, of the given numbers of clients and
// documents, or as many as the set has.
func trainingOf(cfg, train dataset.DocumentConfig) (*dataset.Set, error) {
	train.Seed, train.Split, train.Providers, train.Identifiers, train.Asked = cfg.Seed, dataset.TrainSplit, cfg.Providers, cfg.Identifiers, cfg.Asked
	train.Clients, train.PerClient, train.Sheets = cmp.Or(train.Clients, cfg.Clients), cmp.Or(train.PerClient, cfg.PerClient), cfg.Sheets
	set, err := dataset.Documents(train)
	if err != nil {
		return nil, command.Usage(err)
	}
	return set, nil
}

// pagesFolder is where documents' pictures are, beside the files that name them.
const pagesFolder = "pages"

func clientPath(out, user string) string { return filepath.Join(out, user+".jsonl") }

// onlyThese refuses a folder with files of the same split that a run before this one made and this one would leave: they
// would be taken for its own.
func onlyThese(set *dataset.Set, out, split string) error {
	ours, drawn := map[string]bool{}, map[*dataset.Image]bool{nil: true}
	for i := range set.Examples {
		e := &set.Examples[i]
		ours[clientPath(out, e.User)] = true
		if !drawn[e.Image] {
			drawn[e.Image], ours[filepath.Join(out, pagesFolder, dataset.PageName(set, i))] = true, true
		}
	}
	for _, pattern := range []string{split + "-*.jsonl", pagesFolder + "/" + split + "-*.png"} {
		found, err := fs.Glob(os.DirFS(out), pattern)
		if err != nil {
			return fmt.Errorf("%w", err)
		}
		for _, path := range found {
			if !ours[filepath.Join(out, path)] {
				return named.Errorf("--out %s has %s of a run before, which this one does not make: remove that run's files, or take another folder", out, path)
			}
		}
	}
	return nil
}

func writeInvoices(a *command.App, set *dataset.Set, r invoicesReport, out string) error {
	if err := command.EnsureDir(out); err != nil {
		return err
	}
	r.Examples, r.Labels = len(set.Examples), set.Labels
	for from := 0; from < len(set.Examples); {
		to := from + 1
		for to < len(set.Examples) && set.Examples[to].User == set.Examples[from].User {
			to++
		}
		part := &dataset.Set{Labels: set.Labels, Examples: set.Examples[from:to]}
		path := clientPath(out, part.Examples[0].User)
		if err := dataset.WriteJSONLines(path, part); err != nil {
			return err
		}
		r.Files, from = append(r.Files, path), to
	}
	return a.Emit(r, func(w io.Writer) error {
		_, err := io.WriteString(w, r.text(out))
		return err
	})
}

func (r invoicesReport) text(out string) string {
	if r.Asked == nil {
		return fmt.Sprintf("%d documents in %d files in %s (%s)\n", r.Examples, len(r.Files), out, r.Generator)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions in %d files in %s (%s)\n%d providers of the training split, %d others\n",
		r.Examples, len(r.Files), out, r.Generator, r.Providers.Seen, r.Providers.Unseen)
	if r.Members != "" {
		fmt.Fprintf(&b, "the former are named in %s\n", r.Members)
	}
	keys := slices.SortedFunc(maps.Keys(r.Asked), func(a, b string) int { return cmp.Or(r.Asked[b]-r.Asked[a], cmp.Compare(a, b)) })
	for _, key := range keys {
		fmt.Fprintf(&b, "  %-16s %6d %s\n", key, r.Asked[key], strings.Repeat("#", 40*r.Asked[key]/r.Asked[keys[0]]))
	}
	return b.String()
}
