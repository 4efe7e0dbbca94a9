package model

// TaskMultiLabel is any number of labels for a text, as transformers' problem_type
// multi_label_classification has it: each score says of one label alone whether it is
// right, which it is above 0.
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
