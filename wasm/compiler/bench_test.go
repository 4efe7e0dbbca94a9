package compiler_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// each runs a benchmark with every kernel that this machine has.
func each(b *testing.B, name string, run func(b *testing.B, cfg wasm.Config)) {
	for _, kernel := range wasm.Kernels() {
		b.Run(name+"/"+kernel, func(b *testing.B) { run(b, wasm.Config{Kernel: kernel}) })
	}
}

// BenchmarkStep times one training step, with each kernel for its declared products, and prints its FLOPs, the module's size, its memory and the time that
// verifying, compiling and writing the weights took.
func BenchmarkStep(b *testing.B) {
	nf4 := bertSmall
	nf4.nf4 = true
	for _, c := range []struct {
		name string
		bert bert
	}{{"tiny-b16s32", bertTiny}, {"tiny-b8s64", bertTiny8}, {"small-b8s64", bertSmall}, {"small-nf4-b8s64", nf4}} {
		each(b, c.name, func(b *testing.B, cfg wasm.Config) {
			bin, s := program(b, c.bert, compiler.HostWazero)
			start := time.Now()
			in := instance(b, bin, s, cfg)
			load := time.Since(start)
			m := in.Program().Manifest()
			ctx := context.Background()
			if err := in.Step(ctx); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			defer cputime.Benchmark(b)()
			for b.Loop() {
				if err := in.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
			sec := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(float64(m.FLOPs)/1e9, "GFLOP")
			b.ReportMetric(float64(m.FLOPs)/1e9/sec, "GFLOP/s")
			b.ReportMetric(float64(len(bin))/1024, "module-KB")
			b.ReportMetric(float64(m.Arena.Offset+m.Arena.Size)/1e6, "memory-MB")
			b.ReportMetric(float64(load.Milliseconds()), "load-ms")
			b.ReportMetric(float64(len(m.Segments)), "segments")
		})
	}
}

// BenchmarkGoMLX times the same steps on GoMLX's pure-Go backend; build with GOEXPERIMENT=simd for its SIMD kernels, and
// run with GOMAXPROCS=1 to compare one thread.
func BenchmarkGoMLX(b *testing.B) {
	for _, c := range []struct {
		name string
		bert bert
	}{{"tiny-b16s32", bertTiny}, {"tiny-b8s64", bertTiny8}, {"small-b8s64", bertSmall}} {
		b.Run(c.name, func(b *testing.B) {
			_, s := program(b, c.bert, compiler.HostWazero)
			run := reference(goBackend(b), c.bert)
			defer cputime.Benchmark(b)()
			for b.Loop() {
				run(s)
			}
		})
	}
}

// BenchmarkCompile times the compiler itself: recording, planning and writing BERT-small's step.
func BenchmarkCompile(b *testing.B) {
	var s step
	g, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return bertSmall.build(g, &s) })
	if err != nil {
		b.Fatal(err)
	}
	defer cputime.Benchmark(b)()
	for b.Loop() {
		if _, err := compiler.CompileGraph(g, s.spec("small", compiler.HostWazero)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGEMM times products with each kernel.
func BenchmarkGEMM(b *testing.B) {
	for _, c := range []struct {
		name    string
		m, k, n int
	}{{"512x512x512", 512, 512, 512}, {"512x512x16", 512, 512, 16}, {"512x16x512", 512, 16, 512}, {"16x512x512", 16, 512, 512}} {
		each(b, c.name, func(b *testing.B, cfg wasm.Config) {
			g, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
				x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, c.m, c.k))
				y := graph.Parameter(g, "y", shapes.Make(dtypes.Float32, c.k, c.n))
				return []*graph.Node{graph.Dot(x, y).Product()}
			})
			if err != nil {
				b.Fatal(err)
			}
			bin, err := compiler.CompileGraph(g, compiler.Spec{Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "z"}}})
			if err != nil {
				b.Fatal(err)
			}
			in := instance(b, bin, &step{}, cfg)
			ctx := context.Background()
			defer cputime.Benchmark(b)()
			for b.Loop() {
				if err := in.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2*float64(c.m*c.n*c.k)/1e9/(b.Elapsed().Seconds()/float64(b.N)), "GFLOP/s")
		})
	}
}
