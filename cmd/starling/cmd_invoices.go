package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
)

type invoicesReport struct {
	Files     []string `json:"files"`
	Examples  int      `json:"examples"`
	Labels    []string `json:"labels"`
	Generator string   `json:"generator"`
}

func newInvoicesCmd(a *app) *cobra.Command {
	var cfg dataset.InvoiceConfig
	var out string
	cmd := &cobra.Command{
		Use:   "invoices --out DIR",
		Short: "Write generated invoices as data files, one a client, to try things with",
		Long: `Write generated OCR-like invoices with an 8-class label as JSON Lines, one file
a client. Providers are never shared between clients or splits, so the files
stand for devices that hold different private data.`,
		Example: "  starling invoices --out data --clients 4\n  starling invoices --out data --split test --clients 40 --per-client 8",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usagef("--out is required: the folder to write to")
			}
			return writeInvoices(a, cfg, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the files")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 1, "seed of the generator")
	cmd.Flags().StringVar(&cfg.Split, "split", "train", "train, validation or test")
	cmd.Flags().IntVar(&cfg.Clients, "clients", 4, "clients, one file each")
	cmd.Flags().IntVar(&cfg.PerClient, "per-client", invoicesPerClient, "documents of a client")
	cmd.Flags().IntVar(&cfg.Providers, "providers", 0, "providers that bill one client (0: 6)")
	return cmd
}

func writeInvoices(a *app, cfg dataset.InvoiceConfig, out string) error {
	set, err := dataset.Invoices(cfg)
	if err != nil {
		return usageError{err}
	}
	if err := ensureDir(out); err != nil {
		return err
	}
	r := invoicesReport{Examples: len(set.Examples), Labels: set.Labels, Generator: dataset.GeneratorVersion}
	for from := 0; from < len(set.Examples); from += cfg.PerClient {
		part := &dataset.Set{Labels: set.Labels, Examples: set.Examples[from : from+cfg.PerClient]}
		path := filepath.Join(out, part.Examples[0].User+".jsonl")
		if err := writeJSONLines(path, part); err != nil {
			return err
		}
		r.Files = append(r.Files, path)
	}
	return a.emit(r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d documents in %d files in %s (%s)\n", r.Examples, len(r.Files), out, r.Generator)
		return err
	})
}

func writeJSONLines(path string, set *dataset.Set) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, ex := range set.Examples {
		line := struct {
			Text     string `json:"text"`
			Label    string `json:"label"`
			User     string `json:"user,omitempty"`
			Provider string `json:"provider,omitempty"`
		}{ex.Text, set.Labels[ex.Label], ex.User, ex.Provider}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return w.Flush()
}
