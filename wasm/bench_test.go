package wasm

import (
	"context"
	"fmt"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// BenchmarkLoops measures what it costs to be sure that a loop ends: a loop with
// a proved trip count (no instruction more than a plain one), one that draws on
// the budget once on entry, and, for comparison, one that pays every iteration,
// as instruction metering does (the verifier does not accept that one). The
// bodies are a row of an elementwise loop (4 vectors) and a step of a matrix
// kernel (8 rows of 2 vectors).
func BenchmarkLoops(b *testing.B) {
	v128load := func(at int) []byte { return code(0xfd, 0, 4, u32(at)) }
	v128store := func(at int) []byte { return code(0xfd, 11, 4, u32(at)) }
	mul, add := []byte{0xfd, 0xe6, 0x01}, []byte{0xfd, 0xe4, 0x01}
	var row, kernel []byte
	for i := range 4 {
		row = code(row, get(1), get(1), v128load(1024+16*i), get(1), v128load(32768+16*i), mul, v128store(1024+16*i))
	}
	for i := range 8 {
		kernel = code(kernel, get(1),
			get(1), v128load(1024+16*i), get(1), v128load(2048), mul, get(1), v128load(4096+32*i), add,
			get(1), v128load(1024+16*i), get(1), v128load(2064), mul, add, v128store(4096+32*i))
	}
	const trips = 64
	metered := func(body []byte) []byte {
		return code(i32c(trips), set(0), opLoop, 0x40, opGlobalGet, 0, i64c(200), opI64Sub, opGlobalSet, 0,
			opGlobalGet, 0, i64c(0), opI64LtS, opIf, 0x40, opUnreachable, opEnd, body, downTail(0, 1), opEnd)
	}
	for _, c := range []struct {
		name string
		loop []byte
	}{
		{"row/static", static(0, trips, row, downTail(0, 1))},
		{"row/budget", code(i32c(trips), set(0), dynamic(0, 1, 200, row))},
		{"row/metered", metered(row)},
		{"kernel/static", static(0, trips, kernel, downTail(0, 1))},
		{"kernel/budget", code(i32c(trips), set(0), dynamic(0, 1, 200, kernel))},
		{"kernel/metered", metered(kernel)},
	} {
		b.Run(c.name, func(b *testing.B) {
			// 2000 entries a call, so that the call from Go does not count.
			m := segment0(static(2, 2000, c.loop, downTail(2, 1)))
			host, err := compileHost(context.Background(), m.assemble(), 1, Config{}, nil)
			check(b, err)
			defer host.close()
			in, err := host.instantiate(b.Context(), 0, 1, true)
			check(b, err)
			defer cputime.Benchmark(b)()
			for b.Loop() {
				check(b, in.call(b.Context(), false, Call{}, 1<<40))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000/trips, "ns/iteration")
		})
	}
}

// BenchmarkVerify measures the loader on a module of many functions.
func BenchmarkVerify(b *testing.B) {
	m := toy()
	body := static(0, 0, static(1, 0, code(get(0), get(1), opI32Add, opDrop), upTail(1, 1, 99)), upTail(0, 1, 99))
	for range 600 { // near the limit on joins times locals
		m.funcs = append(m.funcs, fn{locals: 4, body: code(body, body, body)})
	}
	program := m.assemble()
	b.SetBytes(int64(len(program)))
	defer cputime.Benchmark(b)()
	for b.Loop() {
		if _, err := Verify(program, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStep measures the host's share of a step: calls, context checks and
// budgets of a program that computes next to nothing.
func BenchmarkStep(b *testing.B) {
	for _, segments := range []int{2, 200} {
		b.Run(fmt.Sprint(segments, " segments"), func(b *testing.B) {
			m := toy()
			for range segments - 2 {
				m.segments = append(m.segments, 3)
				m.manifest.Segments = append(m.manifest.Segments, Segment{})
			}
			in := instance(b, load(b, m, Config{}))
			fillToy(b, in)
			defer cputime.Benchmark(b)()
			for b.Loop() {
				check(b, in.Step(b.Context()))
			}
		})
	}
}
