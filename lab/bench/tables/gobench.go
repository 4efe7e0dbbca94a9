package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// row is one figure of a Go benchmark: Benchmark is its name without "Benchmark" and
// the number of processors, Metric the unit it is reported in.
type row struct {
	What      string `yaml:"what"`
	Package   string `yaml:"package"`
	Benchmark string `yaml:"benchmark"`
	Metric    string `yaml:"metric"`
	Goal      string `yaml:"goal"`
}

// goRun runs the benchmarks that rows name, package by package, and returns their
// metrics by package, benchmark and unit.
func goRun(ctx context.Context, rows []row, benchtime string) (map[[3]string]float64, error) {
	var pkgs []string
	names := map[string][]string{}
	for _, r := range rows {
		if names[r.Package] == nil {
			pkgs = append(pkgs, r.Package)
		}
		names[r.Package] = append(names[r.Package], r.Benchmark)
	}
	got := map[[3]string]float64{}
	for _, pkg := range pkgs {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern(names[pkg]), "-benchtime", benchtime, "-cpu", "1", pkg)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", pkg, err, out)
		}
		for line := range bytes.Lines(out) {
			name, metrics := benchLine(string(line))
			for unit, v := range metrics {
				got[[3]string{pkg, name, unit}] = v
			}
		}
	}
	return got, nil
}

// pattern matches the benchmarks' first names, of which go test knows subnames
// by levels only.
func pattern(names []string) string {
	var first []string
	for _, n := range names {
		n, _, _ = strings.Cut(n, "/")
		first = append(first, n)
	}
	return "^Benchmark(" + strings.Join(first, "|") + ")$"
}

// benchLine reads a line of go test -bench; the name is empty if it is none.
func benchLine(line string) (name string, metrics map[string]float64) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
		return "", nil
	}
	metrics = map[string]float64{}
	for i := 2; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return "", nil
		}
		metrics[f[i+1]] = v
	}
	return strings.TrimPrefix(f[0], "Benchmark"), metrics
}

// goTable is the rows' table.
func goTable(rows []row, got map[[3]string]float64) (string, error) {
	var b strings.Builder
	b.WriteString("| what | benchmark | figure | goal |\n| --- | --- | --- | --- |\n")
	for _, r := range rows {
		v, ok := got[[3]string{r.Package, r.Benchmark, r.Metric}]
		if !ok {
			return "", fmt.Errorf("%s has no Benchmark%s with a %s", r.Package, r.Benchmark, r.Metric)
		}
		fmt.Fprintf(&b, "| %s | `%s %s` | %s | %s |\n", r.What, r.Package, r.Benchmark, figure(v, r.Metric), r.Goal)
	}
	return b.String(), nil
}

// figure writes a value in the unit a reader would choose.
func figure(v float64, unit string) string {
	switch unit {
	case "cpu-ns/op", "ns/op", "ns/event", "ns/round", "ns/iteration":
		for _, u := range []struct {
			name string
			ns   float64
		}{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
			if v >= u.ns {
				return fmt.Sprintf("%.3g %s", v/u.ns, u.name)
			}
		}
		return fmt.Sprintf("%.3g ns", v)
	case "cpu-ms":
		return figure(v*1e6, "ns/op")
	}
	return fmt.Sprintf("%.4g %s", v, strings.TrimPrefix(unit, "cpu-"))
}
