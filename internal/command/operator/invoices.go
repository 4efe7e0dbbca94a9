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
	var questions, identifiers bool
	cmd := &cobra.Command{
		Use:   "invoices --out DIR",
		Short: "Write generated invoices as data files, one a client, to try things with",
		Long: `Write generated OCR-like invoices with an 8-class label as JSON Lines, one file
a client. Providers are never shared between clients or splits, so the files
stand for devices that hold different private data. With --questions they are
documents as a scanner reads them, words with boxes, each with a question and its
answer, for task answer and the embedded base for documents.`,
		Example: "  starling invoices --out data --clients 4\n  starling invoices --out data --split test --clients 40 --per-client 8",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return command.Usagef("--out is required: the folder to write to")
			}
			if questions {
				return writeQuestions(a, dataset.DocumentConfig{Seed: cfg.Seed, Split: cfg.Split, Clients: cfg.Clients, PerClient: cfg.PerClient,
					Providers: cfg.Providers, Identifiers: identifiers}, out)
			}
			if identifiers {
				return command.Usagef("--identifiers needs --questions: texts with labels have none")
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
	cmd.Flags().BoolVar(&identifiers, "identifiers", false, "with --questions: providers have a tax number and a registration id, in half of their documents")
	return cmd
}

func writeQuestions(a *command.App, cfg dataset.DocumentConfig, out string) error {
	set, err := dataset.Documents(cfg)
	if err != nil {
		return command.Usage(err)
	}
	return writeInvoices(a, set, cfg.PerClient, dataset.DocumentsVersion, out)
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
