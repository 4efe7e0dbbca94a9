// Package inspection verifies a training program as a device does, and describes it.
package inspection

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/wasm"
)

// Report describes a program for `starling inspect`.
type Report struct {
	File        string           `json:"file"`
	SHA256      string           `json:"sha256"` // the address of the program's blob
	Bytes       int              `json:"bytes"`
	Manifest    *wasm.Manifest   `json:"manifest"`
	MemoryPages uint32           `json:"memory_pages"` // of 64 KiB
	Functions   int              `json:"functions"`
	CodeBytes   int              `json:"code_bytes"`
	Static      int              `json:"static_loops"`
	Dynamic     int              `json:"dynamic_loops"`
	Cost        uint64           `json:"step_cost"` // units; without what dynamic loops draw
	Prepare     []segmentSummary `json:"prepare,omitempty"`
	Segments    []segmentSummary `json:"segments"`
	CompileMS   float64          `json:"compile_ms,omitempty"`
	Kernels     []string         `json:"kernels,omitempty"` // what computes declared products here, fastest first; none: browsers run it
}

type segmentSummary struct {
	Export string `json:"export"`
	Name   string `json:"name,omitempty"`
	Cost   uint64 `json:"cost"`
	FLOPs  uint64 `json:"flops,omitempty"`
	When   uint32 `json:"when,omitempty"` // address of its condition
}

// Program verifies the program in a file, and compiles it unless only browsers can.
func Program(ctx context.Context, file string) (*Report, error) {
	program, err := named.Read(file, 1<<30)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	all := wasm.Limits{MemoryPages: wasm.MaxMemoryPages}
	rep, err := wasm.Verify(program, all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m := rep.Manifest
	r := &Report{
		File: file, SHA256: fmt.Sprintf("%x", sha256.Sum256(program)), Bytes: len(program), Manifest: m,
		MemoryPages: rep.MemoryPages, Functions: rep.Functions, CodeBytes: rep.CodeBytes,
		Static: rep.StaticLoops, Dynamic: rep.DynamicLoops,
		Prepare:  prepare(m.Prepare, rep.Prepare),
		Segments: step(m, rep.Segments),
	}
	if !rep.Relaxed { // which browsers alone compile
		p, err := wasm.Load(ctx, program, wasm.Config{Limits: all})
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.CompileMS = float64(time.Since(start).Microseconds()) / 1000
		if r.Kernels = wasm.Kernels(); m.Fused {
			r.Kernels = wasm.FusedKernels()
		}
	}
	for _, s := range rep.Segments {
		r.Cost += s.Cost
	}
	return r, nil
}

func prepare(list []wasm.Segment, proved []wasm.SegmentReport) []segmentSummary {
	var out []segmentSummary
	for i, s := range list {
		out = append(out, segmentSummary{Export: fmt.Sprintf("p%d", i), Name: s.Name, Cost: proved[i].Cost, FLOPs: s.FLOPs})
	}
	return out
}

// step lists a step's segments with all rounds.
func step(m *wasm.Manifest, proved []wasm.SegmentReport) []segmentSummary {
	var out []segmentSummary
	for i, c := range m.Calls() {
		s := m.Segments[c.Segment]
		export := fmt.Sprintf("s%d", c.Segment)
		if c.Told {
			export += fmt.Sprintf("(%d)", c.Round)
		}
		out = append(out, segmentSummary{Export: export, Name: s.Name, Cost: proved[i].Cost, FLOPs: s.FLOPs, When: s.When})
	}
	return out
}

// conditional is how much of a step's work has conditions, and may be left out.
func (r *Report) conditional() (flops uint64) {
	for _, s := range r.Segments {
		if s.When > 0 {
			flops += s.FLOPs
		}
	}
	return flops
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer, segments bool) error {
	m := r.Manifest
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(tw, "name\t%s\n", m.Name)
	fmt.Fprintf(tw, "sha256\t%s\n", r.SHA256)
	fmt.Fprintf(tw, "compiler\t%s, code shaped for %s\n", m.Compiler, m.Host)
	done, by := "verified; it has relaxed SIMD, which browsers run", "by browsers"
	if len(r.Kernels) > 0 {
		done, by = fmt.Sprintf("verified and compiled in %.1f ms", r.CompileMS), "here by "+r.Kernels[0]
	}
	fmt.Fprintf(tw, "module\t%d bytes, %d functions, %d bytes of code; %s\n", r.Bytes, r.Functions, r.CodeBytes, done)
	fmt.Fprintf(tw, "memory\t%s fixed (%d pages), of it arena %s\n", memSize(uint64(r.MemoryPages)*wasm.PageSize), r.MemoryPages, memSize(uint64(m.Arena.Size)))
	if m.FLOPs > 0 {
		seldom := ""
		if work := r.conditional(); work > 0 {
			seldom = fmt.Sprintf(", of it %.4g under conditions", float64(work)/1e9)
		}
		fmt.Fprintf(tw, "step\t%.4g GFLOP%s\n", float64(m.FLOPs)/1e9, seldom)
	}
	fmt.Fprintf(tw, "loops\t%d with a proved trip count, %d on a budget\n", r.Static, r.Dynamic)
	var most uint64
	for _, s := range append(r.Prepare, r.Segments...) {
		most = max(most, s.Cost)
	}
	fmt.Fprintf(tw, "segments\t%d to prepare, %d a step by %d functions; proved cost of a step %.3g, of the longest segment %.3g units\n",
		len(r.Prepare), len(r.Segments), len(m.Segments), float64(r.Cost), float64(most))
	var macs uint64
	step, err := m.Unrolled()
	if err != nil {
		return err
	}
	for i := range step.Products {
		macs += step.Products[i].MultiplyAdds()
	}
	arithmetic := "exact"
	if m.Fused {
		arithmetic = "fused"
	}
	fmt.Fprintf(tw, "products\t%d declared, %.4g GFLOP, %s; computed %s\n", len(step.Products), float64(2*macs)/1e9,
		arithmetic, by)
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, role := range []struct {
		title   string
		tensors []wasm.Tensor
	}{{"inputs", m.Inputs}, {"outputs", m.Outputs}, {"state", m.State}, {"frozen", m.Frozen}} {
		if err := printTensors(w, role.title, role.tensors); err != nil {
			return err
		}
	}
	if !segments {
		return nil
	}
	fmt.Fprintln(w, "\nsegments")
	for _, s := range append(r.Prepare, r.Segments...) {
		fmt.Fprintf(tw, "  %s\t%s\tcost %d\tFLOP %d\n", s.Export, s.Name, s.Cost, s.FLOPs)
	}
	return tw.Flush()
}

func printTensors(w io.Writer, title string, tensors []wasm.Tensor) error {
	var total uint64
	for i := range tensors {
		total += tensors[i].DataSize() + tensors[i].ScalesSize()
	}
	fmt.Fprintf(w, "\n%s: %d tensors, %s\n", title, len(tensors), memSize(total))
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i := range tensors {
		t := &tensors[i]
		kind := string(t.DType)
		if t.NF4 != nil {
			kind = fmt.Sprintf("nf4/%d", t.NF4.Block)
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\tat %d\n", t.Name, kind, strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ","), t.Offset)
	}
	return tw.Flush()
}

// memSize prints bytes with a binary unit.
func memSize(n uint64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
