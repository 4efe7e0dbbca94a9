package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
)

// section is one table, or a few made by one command.
type section struct {
	name, title string
	about       string   // what is measured and what is not; Markdown
	script      []string // prints Markdown, and progress to standard error
	raw         bool     // prints plain text instead
	rows        []row    // or: figures of Go benchmarks
	benchtime   string
	long        bool // only by name
}

// command is what a reader runs to make the section alone.
func (s section) command() string {
	if s.script != nil {
		return strings.Join(s.script, " ")
	}
	return "make bench ONLY=" + s.name
}

func (s section) run(ctx context.Context) (string, error) {
	if s.script == nil {
		got, err := goRun(ctx, s.rows, s.benchtime)
		if err != nil {
			return "", err
		}
		return goTable(s.rows, got)
	}
	cmd := exec.CommandContext(ctx, s.script[0], s.script[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	table := string(out)
	if s.raw {
		table = "```text\n" + strings.TrimSpace(table) + "\n```"
	}
	return table, err
}
