package main

import (
	"context"
	_ "embed" // what the document says
	"os"
	"os/exec"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/strict"
)

// section is one table, or a few made by one command.
type section struct {
	Name      string   `yaml:"name"`
	Title     string   `yaml:"title"`
	About     string   `yaml:"about"`  // what is measured and what is not; Markdown
	Script    []string `yaml:"script"` // prints Markdown, and progress to standard error
	Raw       bool     `yaml:"raw"`    // prints plain text instead
	Rows      []row    `yaml:"rows"`   // or: figures of Go benchmarks
	Benchtime string   `yaml:"benchtime"`
	Long      bool     `yaml:"long"` // only by name
}

//go:embed sections.yaml
var sectionsFile []byte

// sections are the document's, in its order.
var sections = read[[]section](sectionsFile)

// read decodes an embedded file.
func read[T any](file []byte) (v T) {
	if err := strict.Decode(file, &v); err != nil {
		panic(err)
	}
	return v
}

// command is what a reader runs to make the section alone.
func (s section) command() string {
	if s.Script != nil {
		return strings.Join(s.Script, " ")
	}
	return "make bench ONLY=" + s.Name
}

func (s section) run(ctx context.Context) (string, error) {
	if s.Script == nil {
		got, err := goRun(ctx, s.Rows, s.Benchtime)
		if err != nil {
			return "", err
		}
		return goTable(s.Rows, got)
	}
	cmd := exec.CommandContext(ctx, s.Script[0], s.Script[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	table := string(out)
	if s.Raw {
		table = "```text\n" + strings.TrimSpace(table) + "\n```"
	}
	return table, err
}
