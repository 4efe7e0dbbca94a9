// Command mutants puts the faults listed in its folder, one after another, into the
// private path (clipping, rounding, masks, noise, coins, floors, ledger, accountants) and
// says which of them no test notices. make mutants runs it; docs/RATIONALE.md says why
// the faults are written by hand.
//
// Exit code 1 if one is alive, no longer applies, or cannot be tried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/starling-fl/starling/internal/testkit/mutant"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	fl := flag.NewFlagSet("mutants", flag.ContinueOnError)
	root := fl.String("root", ".", "the module's folder; the records are in its folder mutants")
	part := fl.String("part", "1/1", "K/N: every N-th record, from the K-th")
	only := fl.String("only", "", "only records whose file, name or file of records contains one of these, with commas between")
	jobs := fl.Int("jobs", 2, "tests at a time")
	list := fl.Bool("list", false, "only check that every record applies, and list them")
	if err := fl.Parse(args); err != nil {
		return err
	}
	at, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	all, err := records(at, *only)
	if err != nil {
		return err
	}
	if all, err = divide(all, *part); err != nil {
		return err
	}
	if *jobs < 1 {
		return fmt.Errorf("-jobs is %d, must be at least 1", *jobs)
	}
	if *list {
		return check(at, all, w)
	}
	return try(ctx, at, all, *jobs, w)
}

// records reads the folder's files, in the order of their names.
func records(root, only string) ([]mutant.Record, error) {
	names, err := filepath.Glob(filepath.Join(root, "internal", "tools", "mutants", "*.txt"))
	if err != nil {
		return nil, err
	}
	var out []mutant.Record
	seen := map[string]bool{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		found, err := mutant.Read(filepath.Base(name), f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		for _, r := range found {
			if key := r.File + r.In + r.Old + "\x00" + r.New + r.Test.Package; seen[key] {
				return nil, fmt.Errorf("%s: %q is there twice", filepath.Base(name), r.Name)
			} else {
				seen[key] = true
			}
			if wanted(only, r.File, r.Name, filepath.Base(name)) {
				out = append(out, r)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no record of %q in %s", only, filepath.Join(root, "internal", "tools", "mutants"))
	}
	return out, nil
}

func wanted(only string, of ...string) bool {
	for _, want := range strings.Split(only, ",") {
		for _, s := range of {
			if strings.Contains(s, want) {
				return true
			}
		}
	}
	return false
}

// divide takes the K-th of N parts.
func divide(all []mutant.Record, part string) ([]mutant.Record, error) {
	a, b, _ := strings.Cut(part, "/")
	k, err := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if errors.Join(err, err2) != nil || k < 1 || k > n {
		return nil, fmt.Errorf("-part %q, want K/N with 1 <= K <= N", part)
	}
	var out []mutant.Record
	for i := k - 1; i < len(all); i += n {
		out = append(out, all[i])
	}
	return out, nil
}

// check holds that every record fits the program, without running anything.
func check(root string, all []mutant.Record, w io.Writer) error {
	var errs []error
	for _, r := range all {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(r.File)))
		if err == nil {
			_, err = r.Apply(string(text))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Name, err))
			continue
		}
		fmt.Fprintf(w, "%-34s %s\n", r.File, r.Name)
	}
	fmt.Fprintf(w, "%d records, %d do not apply\n", len(all), len(errs))
	return errors.Join(errs...)
}

// try runs all records' tests, first without a fault, then with each.
func try(ctx context.Context, root string, all []mutant.Record, jobs int, w io.Writer) error {
	began := time.Now()
	var mu sync.Mutex
	var errs []error
	counts := map[string]int{}
	sound := map[mutant.Test]func() error{}
	for _, r := range all {
		if sound[r.Test] == nil {
			sound[r.Test] = sync.OnceValue(func() error { return r.Test.Passes(ctx, root) })
		}
	}
	var wg sync.WaitGroup
	turns := make(chan struct{}, jobs)
	for _, r := range all {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if ctx.Err() != nil {
				return
			}
			start := time.Now()
			var v mutant.Verdict
			err := sound[r.Test]()
			if err == nil {
				v, _, err = r.Try(ctx, root)
			}
			mu.Lock()
			defer mu.Unlock()
			word := v.String()
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, mutant.ErrApply):
				word = "no longer applies"
			case err != nil:
				word = "error"
			case v == mutant.Alive:
				err = fmt.Errorf("alive: %s passes", r.Test.Run)
			}
			counts[word]++
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", r.File, r.Name, err))
			}
			fmt.Fprintf(w, "%-8s %6.1fs  %-34s %s\n", word, time.Since(start).Seconds(), r.File, r.Name)
		})
	}
	wg.Wait()
	fmt.Fprintf(w, "%d of %d killed, %d alive, %d no longer apply, %d errors, in %v\n", counts["killed"], len(all), counts["alive"],
		counts["no longer applies"], counts["error"], time.Since(began).Round(time.Second))
	return errors.Join(append(errs, ctx.Err())...)
}
