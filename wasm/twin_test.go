//go:build !js

package wasm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// compileStep compiles a real training step, with frozen matrices in 4 bits if so wanted.
func compileStep(t *testing.T, s *nn.StepSpec, host string, nf4 bool) []byte {
	t.Helper()
	params, outputs, err := s.Build(graph.NewGraph(compiler.New(), "step"))
	if err != nil {
		t.Fatal(err)
	}
	spec := compiler.Spec{Name: "step", Host: host}
	for _, p := range params {
		switch p.Role {
		case nn.State:
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.State})
		case nn.Frozen:
			matrix := len(p.Shape) == 2 && !strings.HasPrefix(p.Name, "pooler.")
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.Frozen, NF4: nf4 && matrix})
		}
	}
	for _, o := range outputs {
		spec.Outputs = append(spec.Outputs, compiler.Output{Name: o.Name, State: o.State})
	}
	program, err := compiler.Compile(func(g *graph.Graph) []*graph.Node {
		_, outputs, err := s.Build(g)
		if err != nil {
			panic(err)
		}
		nodes := make([]*graph.Node, len(outputs))
		for i, o := range outputs {
			nodes[i] = o.Node
		}
		return nodes
	}, spec)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// extreme are values at which arithmetic that is nearly right shows.
var extreme = []uint32{0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 1, 0x80000001,
	0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0xbf800001, 0x0da24260, 0x7f61b1e6}

// scatter fills memory with normal numbers, a share of them extreme.
func scatter(rnd *rand.Rand, memory []byte, share float64) {
	for ; len(memory) >= 4; memory = memory[4:] {
		bits := math.Float32bits(float32(rnd.NormFloat64()))
		if share > 0 && rnd.Float64() < share {
			bits = extreme[rnd.IntN(len(extreme))]
		}
		binary.LittleEndian.PutUint32(memory, bits)
	}
	for i := range memory {
		memory[i] = byte(rnd.Uint32())
	}
}

// blank makes half of A zeros of both signs, somewhere in it: whole rows, which kernels and twins
// leave out, and rows of which some terms are.
func blank(rnd *rand.Rand, a []byte) {
	from := rnd.IntN(len(a)/8+1) * 4
	for word := a[from:][:len(a)/2&^3]; len(word) > 0; word = word[4:] {
		binary.LittleEndian.PutUint32(word, rnd.Uint32()&(1<<31))
	}
}

// equalBits reports whether words are equal, any NaN being equal to any.
func equalBits(a, b []byte) (word int, ok bool) {
	if bytes.Equal(a, b) {
		return 0, true
	}
	for i := 0; i < len(a); i += 4 {
		x, y := binary.LittleEndian.Uint32(a[i:]), binary.LittleEndian.Uint32(b[i:])
		if nan := x<<1 > 0xff000000 && y<<1 > 0xff000000; x != y && !nan {
			return i / 4, false
		}
	}
	return 0, true
}

// TestKernelsEqualTwins holds, for every declared product of real training steps, each
// kernel on one core and on three against the program's own code.
func TestKernelsEqualTwins(t *testing.T) {
	tiny := &nn.StepSpec{Config: model.BERT(512, 128, 1, 4, 128), Method: model.Method{RMax: 16, Alpha: 16}, Classes: 4,
		Rank: 16, Spec: training.Spec{Batch: 2, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: 64}
	rank1, odd, small := *tiny, *tiny, *tiny
	rank1.Rank, rank1.Sequence = 1, 32
	odd.Config, odd.Rank, odd.Batch, odd.Sequence, odd.Classes = model.BERT(101, 60, 1, 3, 40), 5, 3, 17, 7
	small.Config, small.Sequence = model.BERT(512, 512, 1, 8, 128), 32
	for name, c := range map[string]struct {
		spec  *nn.StepSpec
		host  string
		nf4   bool
		plain bool // the plain kernel too: it is slow
	}{
		"tiny": {tiny, compiler.HostWazero, false, true}, "tiny, 4 bits": {tiny, compiler.HostWazero, true, true},
		"rank 1": {&rank1, compiler.HostWazero, false, true}, "odd": {&odd, compiler.HostWazero, false, true},
		"odd, 4 bits": {&odd, compiler.HostWazero, true, true}, "odd, for V8": {&odd, compiler.HostV8, false, false},
		"in parts": {&small, compiler.HostV8, false, false}, "in parts, 4 bits": {&small, compiler.HostV8, true, false},
		"small": {&small, compiler.HostWazero, false, false}, "small, 4 bits": {&small, compiler.HostWazero, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := wasm.Load(t.Context(), compileStep(t, c.spec, c.host, c.nf4), wasm.Config{Kernel: wasm.Twin})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			in, err := p.NewInstance(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names := slices.DeleteFunc(wasm.Kernels(), func(s string) bool { return s == wasm.Twin })
			if c.plain {
				names = append(names, "go")
			}
			m, err := p.Manifest().Unrolled()
			if err != nil {
				t.Fatal(err)
			}
			memory := in.Memory()
			rnd := rand.New(rand.NewPCG(1, uint64(len(name))))
			seen := map[string]bool{}
			before, got := make([]byte, len(memory)), make([]byte, len(memory))
			for i := range m.Products {
				product := &m.Products[i]
				// Products that differ in addresses only share their code.
				key := fmt.Sprint(product.Batch, product.Rows, product.Cols, product.Terms, product.NF4 != 0)
				if seen[key] {
					continue
				}
				seen[key] = true
				for _, share := range []float64{0, .0001, .001, .3} {
					for operand := range 3 {
						for _, r := range m.Reach(product, operand) {
							scatter(rnd, memory[r[0]:r[1]], share)
						}
					}
					a := m.Reach(product, 0)[0]
					blank(rnd, memory[a[0]:a[1]])
					copy(before, memory)
					if err := in.RunTwin(t.Context(), product); err != nil {
						t.Fatal(err)
					}
					c := m.Reach(product, 2)[0]
					for _, kernel := range names {
						for _, cores := range []int{1, 3} {
							copy(got, before)
							if err := m.RunKernel(t.Context(), product, kernel, got, cores); err != nil {
								t.Fatal(err)
							}
							what := fmt.Sprintf("product %d %+v, extreme %v, %s on %d cores", i, *product, share, kernel, cores)
							if word, ok := equalBits(got[c[0]:c[1]], memory[c[0]:c[1]]); !ok {
								t.Fatalf("%s: word %d of C differs", what, word)
							}
							if !bytes.Equal(got[:c[0]], before[:c[0]]) || !bytes.Equal(got[c[1]:], before[c[1]:]) {
								t.Fatalf("%s: wrote outside of C", what)
							}
						}
					}
				}
			}
			if len(seen) < 10 {
				t.Errorf("only %d kinds of products", len(seen))
			}
		})
	}
}
