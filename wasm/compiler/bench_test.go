package compiler_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// BenchmarkStep times one training step in wazero and prints FLOPs, module size, memory and wazero's compile time.
func BenchmarkStep(b *testing.B) {
	nf4 := bertSmall
	nf4.nf4 = true
	for _, c := range []struct {
		name string
		bert bert
	}{{"tiny-b16s32", bertTiny}, {"tiny-b8s64", bertTiny8}, {"small-b8s64", bertSmall}, {"small-nf4-b8s64", nf4}} {
		b.Run(c.name, func(b *testing.B) {
			bin, s := program(b, c.bert, compiler.HostWazero)
			start := time.Now()
			in := instance(b, bin, s, wasm.Config{})
			_ = start
			m := in.Program().Manifest()
			ctx := context.Background()
			if err := in.Step(ctx); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for b.Loop() {
				if err := in.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
			sec := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(float64(m.FLOPs)/1e9, "GFLOP")
			b.ReportMetric(float64(m.FLOPs)/1e9/sec, "GFLOP/s")
			b.ReportMetric(float64(len(bin))/1024, "module-KB")
			b.ReportMetric(float64(m.Arena.Size)/1e6, "arena-MB")
			b.ReportMetric(float64(len(m.Segments)), "segments")
		})
	}
}

// BenchmarkGEMM times products in wazero.
func BenchmarkGEMM(b *testing.B) {
	for _, c := range []struct {
		name    string
		m, k, n int
	}{{"512x512x512", 512, 512, 512}, {"512x512x16", 512, 512, 16}, {"512x16x512", 512, 16, 512}, {"16x512x512", 16, 512, 512}} {
		b.Run(c.name, func(b *testing.B) {
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
			in := instance(b, bin, &step{}, wasm.Config{})
			ctx := context.Background()
			for b.Loop() {
				if err := in.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2*float64(c.m*c.n*c.k)/1e9/(b.Elapsed().Seconds()/float64(b.N)), "GFLOP/s")
		})
	}
}
