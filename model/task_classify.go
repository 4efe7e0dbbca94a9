package model

// TaskClassify is one label for a text.
const TaskClassify TaskKind = ""

var classifyTask = taskSpec{
	kind: TaskClassify, name: "classify", labelled: true,
	problem: "single_label_classification",
	class:   "ForSequenceClassification", peftType: "SEQ_CLS",
	pipeline: "text-classification", title: "A classifier", made: ofLabels,
	usage: func(c *Checkpoint) string {
		return c.tokenized() + "print(model.config.id2label[int(logits[0].argmax())])\n"
	},
}
