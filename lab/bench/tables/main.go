// Command tables runs the committed benchmarks. It writes their figures into docs/results/benchmarks.md, each section
// with the command, commit, day and machine that made it, and the page to decide by, docs/BENCHMARKS.md, from those.
// Sections that are not run keep what they have.
//
//	go run -C lab ./bench/tables [-only NAME,...] [-out docs] [-list] [-render]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "run these sections, separated by commas (default: all but those that take an hour)")
	out := flag.String("out", "docs", "the folder of the two documents")
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
	text, err := os.ReadFile(filepath.Join(out, tablesName))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	results := parse(string(text))
	if err := write(out, results); err != nil {
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
		if err := write(out, results); err != nil {
			return err
		}
	}
	return failed
}

// write makes both documents anew in a folder.
func write(folder string, results map[string]result) error {
	for name, text := range map[string]string{pageName: page(results), tablesName: render(results)} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
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
	// The documents themselves change with every section.
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":!docs/"+pageName, ":!docs/"+tablesName).Output()
	if err != nil {
		return "", err
	}
	if len(changes) > 0 {
		return "", fmt.Errorf("the tree has changes, so that no commit says what made the figures; commit or stash them first:\n%s", changes)
	}
	return fmt.Sprintf("%s, commit %s; %s", time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), machine()), nil
}
