package model

// TaskTag is one label for each word of a text.
const TaskTag TaskKind = "tag"

var tagTask = taskSpec{
	kind: TaskTag, name: "tag", labelled: true, reads: ReadsTokens,
	head:  oneMap("classifier"),
	class: "ForTokenClassification", peftType: "TOKEN_CLS",
	pipeline: "token-classification", title: "A classifier", made: ofLabels,
	usage: func(c *Checkpoint) string {
		return c.tokenized() + "print([model.config.id2label[int(row.argmax())] for row in logits[0]])\n"
	},
}
