package model

import "fmt"

// TaskDenoise is what TaskPretrain comes to over a base with a decoder: parts of a document
// that were hidden, written by it. Job files and devices call it pretrain.
const TaskDenoise TaskKind = "denoise"

var denoiseTask = taskSpec{
	kind: TaskDenoise, name: "pretrain", answer: 128, reads: ReadsDecoder, loss: LossText,
	outputs: func(c Config) int { return c.VocabSize },
	fits: func(c Config) error {
		if c.T5.Boxes == 0 {
			return fmt.Errorf("task is %s, and the base reads no boxes: it learns the places of words", TaskPretrain)
		}
		return nil
	},
	class: "ForConditionalGeneration", auto: "AutoModelForSeq2SeqLM", peftType: "SEQ_2_SEQ_LM",
	pipeline: "document-question-answering", title: "A model pretrained on documents, to be trained further on questions",
	usage: answerTask.usage,
}

// Settled is a task as the base does it, which a job file does not know.
func (c Config) Settled(t TaskKind) TaskKind {
	if t == TaskPretrain && c.Generates() {
		return TaskDenoise
	}
	return t
}
