package operator

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/fleetdata"
)

type invoicesReport struct {
	Files     []string `json:"files"`
	Examples  int      `json:"examples"`
	Labels    []string `json:"labels"`
	Generator string   `json:"generator"`
}

func newInvoicesCmd(a *command.App) *cobra.Command {
	var cfg dataset.InvoiceConfig
	var out string
	var questions bool
	var documents dataset.DocumentConfig
	cmd := &cobra.Command{
		Use:   "invoices --out DIR",
		Short: "Write generated invoices as data files, one a client, to try things with",
		Long: `Write generated OCR-like invoices with an 8-class label as JSON Lines, one file
a client. Providers are never shared between clients or splits, so the files
stand for devices that hold different private data. With --questions they are
documents as a scanner reads them, words with boxes, each with a question and its
answer, for task answer and the embedded base for documents; with --pages beside
pictures of their pages, for a base that looks at them.`,
		Example: "  starling invoices --out data --clients 4\n  starling invoices --out data --split test --clients 40 --per-client 8",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return command.Usagef("--out is required: the folder to write to")
			}
			if questions {
				d := &documents
				d.Seed, d.Split, d.Clients, d.PerClient, d.Providers = cfg.Seed, cfg.Split, cfg.Clients, cfg.PerClient, cfg.Providers
				return writeQuestions(a, *d, out)
			}
			if documents != (dataset.DocumentConfig{}) {
				return command.Usagef("--identifiers, --pages, --ocr-noise and --unnamed need --questions: texts with labels have none")
			}
			set, err := dataset.Invoices(cfg)
			if err != nil {
				return command.Usage(err)
			}
			return writeInvoices(a, set, cfg.PerClient, dataset.GeneratorVersion, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the files")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 1, "seed of the generator")
	cmd.Flags().StringVar(&cfg.Split, "split", "train", "train, validation or test")
	cmd.Flags().IntVar(&cfg.Clients, "clients", 4, "clients, one file each")
	cmd.Flags().IntVar(&cfg.PerClient, "per-client", fleetdata.InvoicesPerClient, "documents of a client")
	cmd.Flags().IntVar(&cfg.Providers, "providers", 0, "providers that bill one client (0: 6, with --questions 4)")
	cmd.Flags().BoolVar(&questions, "questions", false, "documents with questions instead of texts with labels")
	cmd.Flags().BoolVar(&documents.Pages, "pages", false, "with --questions: pictures of the pages, with the provider's logo, in the folder pages")
	cmd.Flags().Float64Var(&documents.Noise, "ocr-noise", 0, "with --questions: share of letters and digits that are read as others; pictures and answers have what is printed")
	cmd.Flags().BoolVar(&documents.Unnamed, "unnamed", false, "with --questions: the sender's name is printed nowhere: its logo alone tells it")
	cmd.Flags().BoolVar(&documents.Identifiers, "identifiers", false, "with --questions: providers have a tax number and a registration id, in half of their documents")
	return cmd
}

func writeQuestions(a *command.App, cfg dataset.DocumentConfig, out string) error {
	set, err := dataset.Documents(cfg)
	if err != nil {
		return command.Usage(err)
	}
	if cfg.Pages {
		if err := writePages(set, out); err != nil {
			return err
		}
	}
	return writeInvoices(a, set, cfg.PerClient, dataset.DocumentsVersion, out)
}

// writePages writes the documents' pictures below a folder, from which they then are.
func writePages(set *dataset.Set, out string) error {
	folder := filepath.Join(out, "pages")
	if err := command.EnsureDir(folder); err != nil {
		return err
	}
	for i := range set.Examples {
		e := &set.Examples[i]
		path := filepath.Join(folder, fmt.Sprintf("%s-%05d.png", e.User, i))
		err := dataset.WritePNG(path, e.Image)
		if err == nil {
			e.Image, err = dataset.OpenImage(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeInvoices(a *command.App, set *dataset.Set, perClient int, generator, out string) error {
	if err := command.EnsureDir(out); err != nil {
		return err
	}
	r := invoicesReport{Examples: len(set.Examples), Labels: set.Labels, Generator: generator}
	for from := 0; from < len(set.Examples); from += perClient {
		part := &dataset.Set{Labels: set.Labels, Examples: set.Examples[from : from+perClient]}
		path := filepath.Join(out, part.Examples[0].User+".jsonl")
		if err := dataset.WriteJSONLines(path, part); err != nil {
			return err
		}
		r.Files = append(r.Files, path)
	}
	return a.Emit(r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d documents in %d files in %s (%s)\n", r.Examples, len(r.Files), out, r.Generator)
		return err
	})
}
