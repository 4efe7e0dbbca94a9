package model

// TaskMultiLabel gives a text any number of labels, as transformers' problem_type multi_label_classification: a
// label is predicted if its own score is above 0.
const TaskMultiLabel TaskKind = "multilabel"

var multiLabelTask = taskSpec{
	kind: TaskMultiLabel, name: "multilabel", labelled: true, loss: LossLabels,
	problem: "multi_label_classification", config: map[string]any{"problem_type": "multi_label_classification"},
	class: "ForSequenceClassification", peftType: "SEQ_CLS",
	pipeline: "text-classification", title: "A classifier of any number of labels", made: ofLabels,
	usage: func(c *Checkpoint) string {
		return c.tokenized() + "print([model.config.id2label[i] for i, score in enumerate(logits[0]) if score > 0])\n"
	},
}
