package model

import (
	"fmt"
	"slices"
)

// TaskKind says what a model is asked, and so what its head is; package task says
// what goes in.
type TaskKind string

const (
	TaskClassify TaskKind = ""       // one label for a text
	TaskTag      TaskKind = "tag"    // one label for each word of a text
	TaskSpan     TaskKind = "span"   // where in a text the answer to a question stands
	TaskImage    TaskKind = "image"  // one label for an image
	TaskAnswer   TaskKind = "answer" // a text, written by a base with a decoder

	TaskPretrain TaskKind = "pretrain" // what a text's masked tokens were
)

// tasks are the known ones, classify first.
var tasks = []TaskKind{TaskClassify, TaskTag, TaskSpan, TaskImage, TaskAnswer, TaskPretrain}

// String is the task's name in a job file.
func (t TaskKind) String() string {
	if t == TaskClassify {
		return "classify"
	}
	return string(t)
}

// ParseTask reads a task's name; "" is classify.
func ParseTask(name string) (TaskKind, error) {
	for _, t := range tasks {
		if name == "" || name == t.String() {
			return t, nil
		}
	}
	return "", fmt.Errorf("%w: task is %.40q, want one of %q", ErrConfig, name, TaskNames())
}

// TaskNames lists the names of the known tasks.
func TaskNames() []string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.String())
	}
	return names
}

// DefaultTask is the task of a base whose kind has only one, else classify.
func (c Config) DefaultTask() TaskKind {
	switch {
	case c.Sees():
		return TaskImage
	case c.Generates():
		return TaskAnswer
	}
	return TaskClassify
}

// CheckTask refuses a task that the base has no inputs or no states for.
func (c Config) CheckTask(t TaskKind) error {
	switch {
	case !slices.Contains(tasks, t):
		return fmt.Errorf("%w: task is %.40q, want one of %q", ErrConfig, string(t), TaskNames())
	case c.Sees() && t != TaskImage:
		return fmt.Errorf("%w: task is %s, but a %s reads images", ErrConfig, t, c.ModelType)
	case !c.Sees() && t == TaskImage:
		return fmt.Errorf("%w: task is %s, but a %s reads texts: give a base that reads images, the folder of a vit", ErrConfig, t, c.ModelType)
	case c.Pooling == PoolNone && t == TaskClassify:
		return fmt.Errorf("%w: task is %s, but the base has no pooler (pooler.dense): "+
			"it is for tasks of words, %s and %s, unless its config.json says \"pooling\": \"mean\", or \"first\"", ErrConfig, t, TaskTag, TaskSpan)
	}
	return nil
}

// OfTokens says whether the task reads each token's state, where others read one of
// the whole example.
func (t TaskKind) OfTokens() bool { return t == TaskTag || t == TaskSpan || t == TaskPretrain }

// Labelled says whether examples, or their words, have labels: one each of a few that
// the job names.
func (t TaskKind) Labelled() bool { return !t.Asks() && t != TaskPretrain }

// InOnePass says whether what a model has learnt is one forward pass over an example: a
// decoder writes an answer token by token, and a pretrained model answers nothing yet.
func (t TaskKind) InOnePass() bool { return t != TaskAnswer && t != TaskPretrain }

// Asks says whether an example of the task is a question, which has answers and no label.
func (t TaskKind) Asks() bool { return t == TaskAnswer || t == TaskSpan }

// HeadFor lists the maps from what the task reads of the last layer to its outputs.
func (c Config) HeadFor(t TaskKind) []Dense {
	switch t {
	case TaskTag: // ForTokenClassification
		return []Dense{{Name: "classifier", Trained: true}}
	case TaskSpan: // ForQuestionAnswering: begin and end
		return []Dense{{Name: "qa_outputs", Trained: true}}
	case TaskPretrain: // see MaskedHead
		return nil
	}
	return c.Head()
}

// For is the configuration as a task uses it: one of tokens has no use for a pooler.
func (c Config) For(t TaskKind) Config {
	if t.OfTokens() {
		c.Pooling = PoolNone
	}
	return c
}
