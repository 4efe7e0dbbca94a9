package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/dataset"
)

// labelledFormats says what a labelled file may be.
const labelledFormats = ".tsv or .txt (label<TAB>text), .jsonl or .csv with a header (text, label, user, provider); plain or .gz; for images a folder of a folder for each label, or .csv of pixels; for questions about documents .jsonl with words, boxes, question and answers"

// columnFlags adds the flags that choose a data file's columns.
func columnFlags(fl *pflag.FlagSet, c *dataset.Columns) {
	textColumnFlag(fl, c)
	fl.StringVar(&c.Label, "label-column", "", "column or JSON key of the labels (default \"label\")")
	fl.BoolVar(&c.Unlabelled, "unlabelled", false, "the texts have no labels, for task pretrain: .jsonl or .csv without them, or one text a line")
}

func textColumnFlag(fl *pflag.FlagSet, c *dataset.Columns) {
	fl.StringVar(&c.Text, "text-column", "", "column or JSON key of the texts (default \"text\"); for .tsv its first line then names the columns")
}

// columnHint adds the flag that mends a missing column.
func columnHint(err error) error {
	missing := new(dataset.ColumnError)
	if !errors.As(err, &missing) {
		return err
	}
	flag := "--text-column"
	if missing.Label {
		flag = "--label-column"
	}
	return fmt.Errorf("%w; choose with %s", err, flag)
}

// loadLabelled reads a labelled file.
func loadLabelled(path string, c dataset.Columns) (*dataset.Set, error) {
	set, err := c.Load(path)
	return set, columnHint(err)
}
