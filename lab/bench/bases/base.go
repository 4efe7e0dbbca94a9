//go:build linux

package main

import (
	"fmt"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/base/llama"
)

// makeBases writes a base with random weights in a shape that people use: it costs
// what a trained one costs.
func makeBases(shape, dir string) error {
	var c model.Config
	var from *model.Base // its tokenizer serves
	var err error
	switch shape {
	case "bert-base": // 109 million parameters
		from, err = base.Default()
		c = model.BERT(30522, 768, 12, 12, 512)
		c.TypeVocabSize, c.HiddenAct, c.Pooling = 2, "gelu", model.PoolHF
	case "t5-small": // 61 million parameters, and tables of boxes
		if from, err = base.Documents(); err == nil {
			c = from.Config
			c.VocabSize, c.HiddenSize, c.NumHiddenLayers, c.NumAttentionHeads, c.IntermediateSize = 32128, 512, 6, 8, 2048
			c.T5.DecoderLayers, c.T5.KeySize, c.T5.MaxDistance = 6, 64, 128
		}
	case "smollm2": // 135 million parameters
		if from, err = llama.Commands(); err == nil {
			c = model.Llama(49152, 576, 30, 9, 8192)
			c.IntermediateSize, c.Decoder.KVHeads, c.Decoder.Rope.Theta = 1536, 3, 1e5
			c.Decoder.Ends, c.Decoder.Begin = from.Config.Decoder.Ends, from.Config.Decoder.Begin
		}
	default:
		return fmt.Errorf("no shape %q", shape)
	}
	if err != nil {
		return err
	}
	b, err := model.RandomBase(c, 1, from.Tokenizer)
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
