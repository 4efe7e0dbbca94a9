// Command tables runs the committed benchmarks and writes their figures into
// docs/BENCHMARKS.md, each section with the command, commit, day and machine that
// made it. Sections that are not run keep what they have.
//
//	go run -C lab ./bench/tables [-only NAME,...] [-out docs/BENCHMARKS.md] [-list] [-render]
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
	root := flag.String("root", "..", "the repository's folder, which scripts and paths are relative to")
	flag.Parse()
	if err := os.Chdir(*root); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *list {
		for _, s := range sections {
			fmt.Printf("%-12s %s\n", s.Name, s.Title)
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
	if len(chosen) > 0 {
		if _, err := made(ctx); err != nil {
			return err
		}
	}
	var failed error
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "== %s: %s\n", s.Name, s.command())
		table, err := s.run(ctx)
		if err != nil { // the others are worth having
			failed = fmt.Errorf("%s: %w", s.Name, err)
			fmt.Fprintln(os.Stderr, "tables:", failed)
			continue
		}
		of, err := made(ctx)
		if err != nil {
			return err
		}
		results[s.Name] = printed(of, table)
		if err := os.WriteFile(out, []byte(render(results)), 0o644); err != nil {
			return err
		}
	}
	return failed
}

// choose finds the sections by name.
func choose(only string) ([]section, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(sections), func(s section) bool { return s.Long }), nil
	}
	var chosen []section
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(sections, func(s section) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no section %q (-list lists them)", name)
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

// made says when, of what and on what a section's figures were made. A tree with changes is refused: nobody could make its
// figures again.
func made(ctx context.Context) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("no commit to name: %w", err)
	}
	// The document itself changes with every section.
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":!docs/BENCHMARKS.md").Output()
	if err != nil {
		return "", err
	}
	if len(changes) > 0 {
		return "", fmt.Errorf("the tree has changes, so that no commit says what made the figures; commit or stash them first:\n%s", changes)
	}
	return fmt.Sprintf("%s, commit %s; %s", time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), machine()), nil
}
