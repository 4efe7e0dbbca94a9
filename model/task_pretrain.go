package model

import (
	"fmt"
	"slices"
)

// TaskPretrain predicts a text's masked tokens.
const TaskPretrain TaskKind = "pretrain"

var pretrainTask = taskSpec{
	kind: TaskPretrain, name: "pretrain", reads: ReadsMasked, loss: LossMasked,
	head:    func(Config) []Dense { return nil }, // see MaskedHead
	outputs: func(c Config) int { return c.VocabSize },
	entries: Config.maskedEntries,
	fits: func(c Config) error {
		if c.arch().masked != nil {
			return nil
		}
		return fmt.Errorf("task is %s, but a %s has no masked language model: one of %q has", TaskPretrain, c.ModelType,
			slices.DeleteFunc(ModelTypes(), func(t string) bool { return architectures[t].masked == nil }))
	},
	class: "ForMaskedLM", tied: true, // and PEFT has no class for masked words
	pipeline: "fill-mask", title: "A masked language model",
	made: func(*Layout) string { return "a head that tells masked words" },
	usage: func(*Checkpoint) string {
		return "inputs = tokenizer([\"a text with a \" + tokenizer.mask_token], return_tensors=\"pt\")\n" + logitsOf +
			"print(tokenizer.decode(logits[inputs[\"input_ids\"] == tokenizer.mask_token_id].argmax(-1)))\n"
	},
}
