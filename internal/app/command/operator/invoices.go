package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/usage"
)

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
		Example: "  starling lab invoices --out data --clients 4\n  starling lab invoices --out data --split test --clients 40 --per-client 8\n" +
			"  starling lab invoices --questions --identifiers --split red --asked 'sender=2,tax number=1' --out red",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage.Errorf("--out is required: the folder to write to")
			}
			if questions {
				if documents.Sheets < 1 {
					return usage.Errorf("--sheets is %d, want 1 to %d", documents.Sheets, dataset.MaxSheets)
				}
				d := &documents
				d.Seed, d.Split, d.Clients, d.PerClient, d.Providers = cfg.Seed, cfg.Split, cfg.Clients, cfg.PerClient, cfg.Providers
				r, err := fleetdata.WriteQuestions(a.Stderr, *d, train, out)
				if err != nil {
					return err
				}
				return a.Emit(r, r.Print)
			}
			if cfg.Split == dataset.RedSplit {
				return usage.Errorf("--split %s needs --questions: it is of documents", cfg.Split)
			}
			for _, name := range ofQuestions {
				if cmd.Flags().Changed(name) {
					return usage.Errorf("--%s needs --questions: it is about documents, not about texts with labels", name)
				}
			}
			r, err := fleetdata.WriteInvoices(cfg, out)
			if err != nil {
				return err
			}
			return a.Emit(r, r.Print)
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
