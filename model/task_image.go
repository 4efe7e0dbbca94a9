package model

import "fmt"

// TaskImage gives an image one label.
const TaskImage TaskKind = "image"

var imageTask = taskSpec{
	kind: TaskImage, name: "image", labelled: true, images: true,
	problem: "single_label_classification",
	class:   "ForImageClassification", peftType: "SEQ_CLS",
	pipeline: "image-classification", title: "A classifier", made: ofLabels,
	usage: func(c *Checkpoint) string {
		mode := map[int]string{1: "L", 3: "RGB"}[c.Adapter.layout.Config.ViT.Channels]
		return fmt.Sprintf("inputs = processor(Image.open(\"image.png\").convert(%q), return_tensors=\"pt\")\n", mode) +
			logitsOf + "print(model.config.id2label[int(logits[0].argmax())])\n"
	},
}
