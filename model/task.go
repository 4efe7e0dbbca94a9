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
	TaskImage    TaskKind = "image"  // one label for an image
	TaskAnswer   TaskKind = "answer" // a text, written by a base with a decoder
)

// tasks are the known ones, classify first.
var tasks = []TaskKind{TaskClassify, TaskImage, TaskAnswer}

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
	case c.Sees() != (t == TaskImage):
		return fmt.Errorf("%w: task is %s, but a %s reads %s", ErrConfig, t, c.ModelType, map[bool]string{true: "images", false: "texts"}[c.Sees()])
	}
	return nil
}

// HeadFor lists the maps from what the task reads of the last layer to its outputs.
func (c Config) HeadFor(TaskKind) []Dense { return c.Head() }
