// Command tables runs the committed benchmarks and writes their figures into
// docs/BENCHMARKS.md, each section with the command, commit, day and machine that
// made it. Sections that are not run keep what they have.
//
//	go run ./bench/tables [-only NAME,...] [-out docs/BENCHMARKS.md] [-list] [-render]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "run these sections, separated by commas (default: all but those that take an hour)")
	out := flag.String("out", "docs/BENCHMARKS.md", "the document")
	list := flag.Bool("list", false, "list the sections and run nothing")
	again := flag.Bool("render", false, "write the document with the figures it has: after a change of a section's words")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *list {
		for _, s := range sections {
			fmt.Printf("%-12s %s\n", s.name, s.title)
		}
		return
	}
	if err := run(ctx, *only, *out, *again); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, out string, again bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if again {
		chosen = nil
	}
	text, err := os.ReadFile(out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	results := parse(string(text))
	if err := os.WriteFile(out, []byte(render(results)), 0o644); err != nil {
		return err
	}
	var failed error
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "== %s: %s\n", s.name, s.command())
		table, err := s.run(ctx)
		if err != nil { // the others are worth having
			failed = fmt.Errorf("%s: %w", s.name, err)
			fmt.Fprintln(os.Stderr, "tables:", failed)
			continue
		}
		results[s.name] = result{made: made(ctx), table: table}
		if err := os.WriteFile(out, []byte(render(results)), 0o644); err != nil {
			return err
		}
	}
	return failed
}

// choose finds the sections by name.
func choose(only string) ([]section, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(sections), func(s section) bool { return s.long }), nil
	}
	var chosen []section
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no section %q (-list lists them)", name)
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

// made says when, of what and on what a section's figures were made.
func made(ctx context.Context) string {
	commit := "an unknown commit"
	if b, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = "commit " + strings.TrimSpace(string(b))
		// The document itself changes with every section.
		if b, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":!docs/BENCHMARKS.md").Output(); err != nil || len(b) > 0 {
			commit += " and changes to it"
		}
	}
	return fmt.Sprintf("%s, %s; %s", time.Now().UTC().Format(time.DateOnly), commit, machine())
}
