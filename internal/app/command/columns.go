package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/data/dataset"
)

// ColumnFlags adds the flags that choose a data file's columns.
func ColumnFlags(fl *pflag.FlagSet, c *dataset.Columns) {
	TextColumnFlag(fl, c)
	fl.Var(mapping{c}, "map", "what columns or JSON keys are called, as text=question,label=category; also user, prompt, completion, messages and others")
	fl.StringVar(&c.Label, "label-column", "", "column or JSON key of the labels (default \"label\")")
	fl.BoolVar(&c.Unlabelled, "unlabelled", false, "the texts have no labels, for task pretrain: .jsonl or .csv without them, or one text a line")
}

// TextColumnFlag adds the flag that chooses the column of texts.
func TextColumnFlag(fl *pflag.FlagSet, c *dataset.Columns) {
	fl.StringVar(&c.Text, "text-column", "", "column or JSON key of the texts (default \"text\"); for .tsv its first line then names the columns")
}

// mapping is --map.
type mapping struct{ *dataset.Columns }

func (m mapping) Set(list string) error { return m.Map(list) }
func (mapping) Type() string            { return "NAME=COLUMN,..." }

// columnHint names the flag that helps with a missing column, where the command has it.
func columnHint(cmd *cobra.Command, err error) error {
	missing := new(dataset.ColumnError)
	if !errors.As(err, &missing) {
		return err
	}
	name := "text"
	if missing.Label {
		name = "label"
	}
	switch {
	case cmd.Flags().Lookup("map") != nil:
		return fmt.Errorf("%w; choose with --map %s=COLUMN", err, name)
	case cmd.Flags().Lookup(name+"-column") != nil:
		return fmt.Errorf("%w; choose with --%s-column", err, name)
	}
	return err
}
