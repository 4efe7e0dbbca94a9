package model

import "fmt"

// TaskCausal predicts a text's next token: fine-tuning of a language model on texts, or on completions of prompts.
const TaskCausal TaskKind = "causal"

var causalTask = taskSpec{
	kind: TaskCausal, name: "causal", reads: ReadsNext, loss: LossMasked,
	head:    func(Config) []Dense { return nil }, // of the base: its embeddings, or lm_head
	outputs: func(c Config) int { return c.VocabSize },
	class:   "ForCausalLM", auto: "AutoModelForCausalLM", peftType: "CAUSAL_LM",
	pipeline: "text-generation", title: "A language model",
	usage: func(c *Checkpoint) string {
		return fmt.Sprintf("inputs = tokenizer(\"a text\", truncation=True, max_length=%d, return_tensors=\"pt\")\n", c.Seq) +
			"print(tokenizer.decode(model.eval().generate(**inputs, max_new_tokens=64, do_sample=False)[0], skip_special_tokens=True))\n"
	},
}
