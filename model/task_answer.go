package model

import "fmt"

// TaskAnswer is a text, the answer to a question, written by a base with a decoder.
const TaskAnswer TaskKind = "answer"

var answerTask = taskSpec{
	kind: TaskAnswer, name: "answer", asks: true, answer: 32, reads: ReadsDecoder, loss: LossText,
	outputs: func(Config) int { return 0 }, // those of its tied embeddings, which are no head
	class:   "ForConditionalGeneration", auto: "AutoModelForSeq2SeqLM", peftType: "SEQ_2_SEQ_LM",
	pipeline: "document-question-answering", title: "A model that answers",
	usage: func(c *Checkpoint) string {
		lines := fmt.Sprintf("inputs = tokenizer([\"a text\"], truncation=True, max_length=%d, return_tensors=\"pt\")\n", c.Seq)
		if c.Adapter.layout.Config.T5.Boxes > 0 {
			lines += "# boxes=[[[left, top, right, bottom], ...]], 0 to 1000, beside input_ids say where each token stands\n"
		}
		return lines + "print(tokenizer.batch_decode(model.eval().generate(**inputs, max_new_tokens=32), skip_special_tokens=True))\n"
	},
}
