//go:build linux

package main

import (
	"fmt"

	"github.com/starling-fl/starling/internal/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// makeBases writes a base with random weights in a shape that people use: it costs
// what a trained one costs.
func makeBases(shape, dir string) error {
	if shape != "bert-base" {
		return fmt.Errorf("no shape %q", shape)
	}
	small, err := base.Default()
	if err != nil {
		return err
	}
	c := model.BERT(30522, 768, 12, 12, 512) // 109 million parameters
	c.TypeVocabSize, c.HiddenAct, c.Pooling = 2, "gelu", model.PoolHF
	b, err := model.RandomBase(c, 1, small.Tokenizer)
	if err != nil {
		return err
	}
	return b.WriteDir(dir)
}

// load opens a base as a coordinator does and prints the megabytes that devices
// fetch, and the processor time that it took.
func load(dir, format string) error {
	before := cputime.Now()
	b, err := model.LoadBaseDir(dir)
	if err == nil {
		b, err = job.Job{BaseFormat: format}.OpenBase(b)
	}
	if err != nil {
		return err
	}
	blob, err := b.View()
	if err != nil {
		return err
	}
	if _, err := b.SHA256(); err != nil {
		return err
	}
	fmt.Printf("%.1f %.2f\n", float64(blob.Size())/1e6, (cputime.Now() - before).Seconds())
	return nil
}
