// Command steps makes the programs of the WebAssembly benchmark and times them
// under wazero, and the same step on GoMLX's Go backend. lab/bench/wasm/run.sh calls
// it beside node, PyTorch, TensorFlow.js and OpenBLAS:
//
//	steps emit DIR [laptop] [CASE...]  programs for both hosts, or for laptops alone, their inputs and a description;
//	                          without names of padded cases
//	steps wazero PROGRAM INPUTS [-steps n] [-warm n] [-kernel name] [-cores n] [-interpreter] [-label s]
//	steps gomlx DIR CASE [-steps n] [-warm n] [-label s] [-smooth]
//	steps report DIR          the markdown tables from DIR/results.jsonl
//
// Each timing is one JSON object on standard output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/wasm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: steps emit|wazero|gomlx|report, then a directory or a program")
	}
	switch args[0] {
	case "emit":
		return emit(ctx, args[1], args[2:])
	case "report":
		return report(os.Stdout, args[1])
	}
	if len(args) < 3 {
		return fmt.Errorf("steps %s wants two arguments", args[0])
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	steps := flags.Int("steps", 3, "timed steps")
	warm := flags.Int("warm", 1, "steps before them")
	label := flags.String("label", "", "name of the engine in the report")
	smooth := flags.Bool("smooth", false, "gomlx: write exp and tanh by expm1")
	interpreter := flags.Bool("interpreter", false, "run in wazero's interpreter")
	kernel := flags.String("kernel", "", "what computes declared products; twin: the program's own code")
	cores := flags.Int("cores", 1, "cores for declared products")
	if err := flags.Parse(args[3:]); err != nil {
		return err
	}
	var r *result
	var err error
	switch args[0] {
	case "wazero":
		r, err = runWazero(ctx, args[1], args[2], *warm, *steps,
			wasm.Config{Interpreter: *interpreter, Kernel: *kernel, Cores: *cores, Limits: limits})
	case "gomlx":
		r, err = runGoMLX(ctx, args[1], args[2], *warm, *steps, *smooth)
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
	if err != nil {
		return err
	}
	if *label != "" {
		r.Engine = *label
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// result is one timing, in the form of run_program.mjs.
type result struct {
	Name      string               `json:"name"`
	Engine    string               `json:"engine"`
	Bytes     int                  `json:"bytes,omitempty"`
	Memory    uint64               `json:"memory_bytes,omitempty"`
	CompileMS float64              `json:"compile_ms,omitempty"`
	StartMS   float64              `json:"start_ms,omitempty"`
	PrepareMS float64              `json:"prepare_ms,omitempty"`
	Steps     int                  `json:"steps"`
	MinMS     float64              `json:"min_ms"`
	CPUMS     float64              `json:"cpu_ms"` // processor time of the fastest step, all threads
	MedianMS  float64              `json:"median_ms"`
	FLOPs     uint64               `json:"flops,omitempty"`
	GFLOPS    float64              `json:"gflops,omitempty"`
	PeakRSS   int64                `json:"peak_rss_bytes,omitempty"`
	Outputs   map[string][]float32 `json:"outputs,omitempty"`
	State     string               `json:"state_sha256,omitempty"`

	// DeltaError is the relative L2 distance of a peer's update after one step to
	// the program's.
	DeltaError float64 `json:"delta_error,omitempty"`
}

// clock times steps: on the wall, and in processor time, which a busy machine
// does not stretch.
type clock struct {
	wall, cpu []float64
	start     time.Time
	used      time.Duration
}

func (c *clock) begin() { c.start, c.used = time.Now(), cputime.Now() }

func (c *clock) end() {
	c.wall = append(c.wall, ms(time.Since(c.start)))
	c.cpu = append(c.cpu, ms(cputime.Now()-c.used))
}

func (r *result) times(c *clock) {
	if len(c.wall) == 0 {
		return
	}
	slices.Sort(c.wall)
	r.MinMS, r.MedianMS, r.CPUMS = c.wall[0], c.wall[len(c.wall)/2], slices.Min(c.cpu)
	if r.FLOPs > 0 && r.CPUMS > 0 {
		r.GFLOPS = float64(r.FLOPs) / r.CPUMS / 1e6
	}
}
