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

// report prints the tables from DIR/results.jsonl: one result a line, of every
// engine. Times are the fastest step; rates and ratios are of processor time, within this
// one run.
func report(w io.Writer, dir string) error {
	f, err := os.Open(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	var all []result
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%.80s: %w", lines.Text(), err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	peak := 0.0
	for _, r := range all {
		if r.Name == peakName {
			peak = max(peak, r.GFLOPS)
			fmt.Fprintf(w, "- %s: %.1f GFLOP/s in a loop of multiplications and additions in registers\n", r.Engine, r.GFLOPS)
		}
	}
	if peak > 0 {
		fmt.Fprintf(w, "\nThe faster of these is the ceiling of 128-bit SIMD without fused multiply-add on this machine.\n")
	}
	for _, c := range cases() {
		var rows []result
		for _, r := range all {
			if r.Name == c.Name {
				rows = append(rows, r)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if c.GEMM != nil {
			printGEMM(w, &c, rows, peak)
		} else {
			printStep(w, &c, rows)
		}
	}
	return nil
}

func printGEMM(w io.Writer, c *benchCase, rows []result, peak float64) {
	flops := float64(gemmFLOPs(c.GEMM))
	fmt.Fprintf(w, "\n### %s\n\n| engine | ms | CPU ms | GFLOP/s | of OpenBLAS | of the ceiling |\n| --- | --- | --- | --- | --- | --- |\n", c.Name)
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
	fmt.Fprintf(w, "| engine | ms a step | CPU ms | GFLOP/s | of PyTorch's speed | module | compile ms | start ms | prepare ms | peak MB |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	peer := find(rows, "torch")
	for _, r := range rows {
		of, module, compile, start, prepare := "", "", "", "", ""
		if peer != nil {
			of = fmt.Sprintf("%.3fx", peer.CPUMS/r.CPUMS)
		}
		if r.Bytes > 0 {
			module = fmt.Sprintf("%.1f KB", float64(r.Bytes)/1000)
			compile, start, prepare = fmt.Sprintf("%.1f", r.CompileMS), fmt.Sprintf("%.1f", r.StartMS), fmt.Sprintf("%.1f", r.PrepareMS)
		}
		fmt.Fprintf(w, "| %s | %.1f | %.1f | %.2f | %s | %s | %s | %s | %s | %.0f |\n", r.Engine, r.MinMS, r.CPUMS,
			float64(flops)/r.CPUMS/1e6, of, module, compile, start, prepare, float64(r.PeakRSS)/1e6)
	}
	if peer != nil && peer.DeltaError > 0 {
		fmt.Fprintf(w, "\nThe update of one step differs from PyTorch's by %.1e (relative L2).\n", peer.DeltaError)
	}
	ratios(w, rows)
}

// ratios prints how much faster the programs are than the other ways to run the
// same step.
func ratios(w io.Writer, rows []result) {
	var out []string
	for _, ours := range []string{"native", "native fused", "wazero", "node", "node fused"} {
		us := find(rows, ours)
		if us == nil {
			continue
		}
		for _, peer := range []string{"gomlx plain", "gomlx simd", "tfjs", "torch"} {
			for i := range rows {
				if them := &rows[i]; strings.HasPrefix(them.Engine, peer) && !strings.HasSuffix(them.Engine, "threads") {
					out = append(out, fmt.Sprintf("- %s: %.2fx as fast as %s", us.Engine, them.CPUMS/us.CPUMS, them.Engine))
				}
			}
		}
	}
	out = append(out, pairs(rows)...)
	if len(out) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(out, "\n"))
	}
}

// pairs prints what a second core gains, and how that stands beside PyTorch's two
// threads: by the wall, which a busy machine stretches.
func pairs(rows []result) (out []string) {
	torch := slices.IndexFunc(rows, func(r result) bool { return strings.HasSuffix(r.Engine, ", 2 threads") })
	for _, two := range rows {
		kind, _, _ := strings.Cut(two.Engine, " (")
		if !strings.HasSuffix(two.Engine, ", 2 workers") && !strings.HasSuffix(two.Engine, ", 2 cores)") {
			continue
		}
		if i := strings.LastIndex(kind, " v"); i > 0 { // node's version
			kind = kind[:i]
		}
		one := slices.IndexFunc(rows, func(r result) bool {
			return r.Engine == strings.NewReplacer(", 2 workers", "", ", 2 cores", "").Replace(two.Engine)
		})
		if one >= 0 {
			out = append(out, fmt.Sprintf("- %s, two at once: %.2fx as fast as one (wall)", kind, rows[one].MinMS/two.MinMS))
		}
		if torch >= 0 {
			out = append(out, fmt.Sprintf("- %s, two at once: %.2fx as fast as %s (wall)", kind, rows[torch].MinMS/two.MinMS,
				rows[torch].Engine))
		}
	}
	return out
}

// find returns the first result of an engine, by the beginning of its name.
func find(rows []result, engine string) *result {
	for i := range rows {
		if strings.HasPrefix(rows[i].Engine, engine) {
			return &rows[i]
		}
	}
	return nil
}
