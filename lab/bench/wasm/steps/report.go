package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// processes ends the engine of each of two processes that ran at once (run.sh).
const processes = ", one of two processes"

// report prints the tables from DIR/results.jsonl: one result a line, of every
// engine, in several rounds. Times are the fastest step; rates and ratios are of processor time,
// within this one run.
func report(w io.Writer, dir string) error {
	all, err := results(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		return err
	}
	peak := 0.0
	for _, r := range fastest(all, peakName) {
		peak = max(peak, r.GFLOPS)
		fmt.Fprintf(w, "- %s: %.1f GFLOP/s in a loop of multiplications and additions in registers\n", r.Engine, r.GFLOPS)
	}
	if peak > 0 {
		fmt.Fprintf(w, "\nThe faster of these is the ceiling of 128-bit SIMD without fused multiply-add on this machine.\n")
	}
	printGoals(w, all)
	for _, c := range cases() {
		rows := fastest(all, c.Name)
		switch {
		case len(rows) == 0:
		case c.GEMM != nil:
			printGEMM(w, &c, rows, peak)
		default:
			printStep(w, &c, rows)
		}
	}
	return nil
}

func results(file string) (all []result, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%.80s: %w", lines.Text(), err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return all, nil
}

// fastest returns one row an engine of a case, with the least that any round measured.
func fastest(all []result, name string) (rows []result) {
	for _, r := range all {
		if r.Name != name || strings.HasSuffix(r.Engine, processes) {
			continue
		}
		i := slices.IndexFunc(rows, func(o result) bool { return o.Engine == r.Engine })
		if i < 0 {
			rows = append(rows, r)
			continue
		}
		o := &rows[i]
		o.MinMS, o.CPUMS, o.MedianMS = min(o.MinMS, r.MinMS), min(o.CPUMS, r.CPUMS), min(o.MedianMS, r.MedianMS)
		o.GFLOPS = max(o.GFLOPS, r.GFLOPS)
	}
	return rows
}

func printGEMM(w io.Writer, c *benchCase, rows []result, peak float64) {
	flops := float64(gemmFLOPs(c.GEMM))
	fmt.Fprintf(w, "\n### %s\n\n| engine | ms | CPU ms | GFLOP/s | of OpenBLAS | of the ceiling |\n"+
		"| --- | --- | --- | --- | --- | --- |\n", c.Name)
	peer := find(rows, "numpy")
	for _, r := range rows {
		of := ""
		if peer != nil {
			of = fmt.Sprintf("%.2fx", peer.CPUMS/r.CPUMS)
		}
		ceiling := ""
		if peak > 0 && !strings.HasPrefix(r.Engine, "numpy") {
			ceiling = fmt.Sprintf("%.2fx", flops/r.CPUMS/1e6/peak)
		}
		fmt.Fprintf(w, "| %s | %.3f | %.3f | %.1f | %s | %s |\n", r.Engine, r.MinMS, r.CPUMS, flops/r.CPUMS/1e6, of, ceiling)
	}
}

func printStep(w io.Writer, c *benchCase, rows []result) {
	var flops uint64
	for _, r := range rows {
		flops = max(flops, r.FLOPs)
	}
	fmt.Fprintf(w, "\n### %s: %.3f GFLOP a step\n\n", c.Name, float64(flops)/1e9)
	fmt.Fprint(w, "| engine | ms a step | CPU ms | GFLOP/s | of PyTorch's speed "+
		"| module | compile ms | start ms | peak MB |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	peer := find(rows, "torch")
	for _, r := range rows {
		of, module, compile, start := "", "", "", ""
		if peer != nil {
			of = fmt.Sprintf("%.3fx", peer.CPUMS/r.CPUMS)
		}
		if r.Bytes > 0 {
			module = fmt.Sprintf("%.1f KB", float64(r.Bytes)/1000)
			compile, start = fmt.Sprintf("%.1f", r.CompileMS), fmt.Sprintf("%.1f", r.StartMS)
		}
		fmt.Fprintf(w, "| %s | %.1f | %.1f | %.2f | %s | %s | %s | %s | %.0f |\n", r.Engine, r.MinMS, r.CPUMS,
			float64(flops)/r.CPUMS/1e6, of, module, compile, start, float64(r.PeakRSS)/1e6)
	}
	if peer != nil && peer.DeltaError > 0 {
		fmt.Fprintf(w, "\nThe update of one step differs from PyTorch's by %.1e (relative L2).\n", peer.DeltaError)
	}
}

// find returns the first result of an engine, by the beginning of its name; none of two cores at once.
func find(rows []result, engine string) *result {
	for i := range rows {
		if e := rows[i].Engine; strings.HasPrefix(e, engine) && !strings.Contains(e, ", 2 ") {
			return &rows[i]
		}
	}
	return nil
}
