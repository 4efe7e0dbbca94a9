package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/lab/internal/resident"
	"github.com/starling-fl/starling/wasm"
)

var hosts = []string{"wazero", "v8"}

// limits let programs have all the memory that one can.
var limits = wasm.Limits{MemoryPages: wasm.MaxMemoryPages}

// emit writes DIR/CASE.HOST.wasm, DIR/CASE.fused.HOST.wasm, DIR/CASE.bin and DIR/CASE.json, and the peak
// program. "laptop" among the cases leaves programs for browsers out.
func emit(ctx context.Context, dir string, only []string) error {
	hosts := hosts
	if i := slices.Index(only, "laptop"); i >= 0 {
		hosts, only = hosts[:1], slices.Delete(only, i, i+1)
	}
	peak, err := peakProgram()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, peakName+".wasm"), peak, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, peakName+".bin"), nil, 0o600); err != nil {
		return err
	}
	for _, c := range cases() {
		if len(only) > 0 && !slices.Contains(only, c.Name) || len(only) == 0 && c.Full {
			continue
		}
		for _, host := range hosts {
			program, err := c.write(dir, host, false)
			if err == nil {
				_, err = c.write(dir, host, true)
			}
			if err != nil {
				return fmt.Errorf("%s for %s: %w", c.Name, host, err)
			}
			if host != hosts[0] {
				continue
			}
			if err := c.snapshot(ctx, program, filepath.Join(dir, c.Name+".bin")); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		info, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, c.Name+".json"), info, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// write compiles a case into a file.
func (c *benchCase) write(dir, host string, fused bool) ([]byte, error) {
	start := time.Now()
	program, err := c.compile(host, fused)
	if err != nil {
		return nil, err
	}
	name := c.Name
	if fused {
		name += ".fused"
	}
	file := filepath.Join(dir, name+"."+host+".wasm")
	fmt.Fprintf(os.Stderr, "%s: %d bytes in %v\n", file, len(program), time.Since(start).Round(time.Millisecond))
	return program, os.WriteFile(file, program, 0o600)
}

// snapshot writes the case's inputs as the program's memory holds them, and notes its
// manifest. The tensors are in the same order in the programs for both hosts.
func (c *benchCase) snapshot(ctx context.Context, program []byte, file string) (err error) {
	p, err := wasm.Load(ctx, program, wasm.Config{Limits: limits})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	in, err := p.NewInstance(ctx)
	if err != nil {
		return err
	}
	m := p.Manifest()
	c.Manifest = m
	for _, t := range m.Frozen {
		if err := in.WriteFrozen(t.Name, floats(t.Name, t.Len())); err != nil {
			return err
		}
	}
	for _, t := range append(m.State, m.Inputs...) {
		switch {
		case t.Name == task.Tokens:
			err = in.WriteInt32(t.Name, c.tokens())
		case t.Name == task.Boxes:
			err = in.WriteInt32(t.Name, make([]int32, t.Len())) // how long a step takes does not depend on them
		case t.Name == task.Places:
			err = in.WriteInt32(t.Name, c.places(t.Len()))
		case t.Name == task.Labels, t.Name == task.DecoderTokens:
			err = in.WriteInt32(t.Name, c.labels(t.Len()))
		default:
			err = in.WriteFloat32(t.Name, floats(t.Name, t.Len()))
		}
		if err != nil {
			return err
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := in.Snapshot(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// runWazero is run_program.mjs in Go.
func runWazero(ctx context.Context, programFile, inputs string, warm, steps int, cfg wasm.Config) (_ *result,
	err error) {
	program, err := os.ReadFile(programFile)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	p, err := wasm.Load(ctx, program, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	m := p.Manifest()
	engine, native, kernels := "wazero", "native", wasm.Kernels()
	if m.Fused {
		native, kernels = "native fused", wasm.FusedKernels()
	}
	if kernel := cmp.Or(cfg.Kernel, kernels[0]); kernel != wasm.Twin && !cfg.Interpreter {
		engine = fmt.Sprintf("%s (%s)", native, kernel)
		if cfg.Cores > 1 {
			engine = fmt.Sprintf("%s (%s, %d cores)", native, kernel, cfg.Cores)
		}
	}
	r := &result{Name: m.Name, Engine: engine, Bytes: len(program), CompileMS: ms(time.Since(start)),
		Memory: uint64(p.Report().MemoryPages) * wasm.PageSize, FLOPs: m.FLOPs, Steps: warm + steps}
	start = time.Now()
	in, err := p.NewInstance(ctx)
	if err != nil {
		return nil, err
	}
	r.StartMS = ms(time.Since(start))
	f, err := os.Open(inputs)
	if err != nil {
		return nil, err
	}
	if err := in.Restore(bufio.NewReaderSize(f, 1<<20)); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	runtime.GC()
	start = time.Now()
	if err := in.Prepare(ctx); err != nil {
		return nil, err
	}
	r.PrepareMS = ms(time.Since(start))
	times := new(clock)
	for i := range warm + steps {
		times.begin()
		if err := in.Step(ctx); err != nil {
			return nil, err
		}
		if i >= warm {
			times.end()
		}
	}
	r.times(times)
	r.Outputs = make(map[string][]float32)
	for _, t := range m.Outputs {
		v := make([]float32, t.Len())
		if err := in.ReadFloat32(t.Name, v); err != nil {
			return nil, err
		}
		r.Outputs[t.Name] = v[:min(16, len(v))]
	}
	sum, err := in.StateSHA256()
	if err != nil {
		return nil, err
	}
	r.State = fmt.Sprintf("%x", sum)
	r.PeakRSS = resident.Own()
	return r, nil
}
