package compiler_test

import (
	"context"
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

func goBackend(t testing.TB) compute.Backend {
	t.Helper()
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// program compiles the step.
func program(t testing.TB, b bert, host string) ([]byte, *step) {
	t.Helper()
	return compile(t, b, host, false)
}

// compile is program with a choice of arithmetic.
func compile(t testing.TB, b bert, host string, fused bool) ([]byte, *step) {
	t.Helper()
	var s step
	g, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return b.build(g, &s) })
	if err != nil {
		t.Fatal(err)
	}
	spec := s.spec("bert", host)
	spec.Fused = fused
	bin, err := compiler.CompileGraph(g, spec)
	if err != nil {
		t.Fatal(err)
	}
	return bin, &s
}

// instance loads a program and writes all parameters.
func instance(t testing.TB, bin []byte, s *step, cfg wasm.Config) *wasm.Instance {
	t.Helper()
	ctx := context.Background()
	p, err := wasm.Load(ctx, bin, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	in, err := p.NewInstance(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	for _, p := range s.params {
		switch {
		case p.Role == compiler.Frozen:
			err = in.WriteFrozen(p.Name, p.f32)
		case p.dtype == dtypes.Int32:
			err = in.WriteInt32(p.Name, p.i32)
		default:
			err = in.WriteFloat32(p.Name, p.f32)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// relative is the norm of a-b over the norm of b.
func relative(a, b []float32) float64 {
	var d, n float64
	for i := range a {
		e := float64(a[i]) - float64(b[i])
		d += e * e
		n += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(d / (n + 1e-30))
}

// TestStepAgainstGoBackend holds one step, loss and update of every trained tensor, against the pure-Go backend.
func TestStepAgainstGoBackend(t *testing.T) {
	erf := bertToy
	erf.erf, erf.optimizer = true, "adamw"
	odd := bertToy
	odd.hidden, odd.heads, odd.ffn, odd.seq, odd.batch, odd.rank, odd.optimizer = 15, 3, 37, 7, 5, 1, "momentum"
	for name, b := range map[string]bert{"toy": bertToy, "erf": erf, "odd": odd, "tiny": bertTiny8} {
		t.Run(name, func(t *testing.T) {
			bin, s := program(t, b, compiler.HostWazero)
			want := reference(goBackend(t), b)(s)
			in := instance(t, bin, s, wasm.Config{})
			if err := in.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
			var allGot, allWant []float32
			for i, o := range s.outputs {
				got := make([]float32, len(want[i]))
				name := o.State
				if name == "" {
					name = o.Name
				}
				if err := in.ReadFloat32(name, got); err != nil {
					t.Fatal(err)
				}
				base := make([]float32, len(got))
				for _, p := range s.params {
					if p.Name == o.State {
						base = p.f32
					}
				}
				// Compare updates, not values: gradients stand beside far larger parameters.
				for j := range got {
					got[j] -= base[j]
					want[i][j] -= base[j]
				}
				if e := relative(got, want[i]); !(e < 3e-5) {
					t.Errorf("%s: relative error %.2g of the update", name, e)
				}
				allGot, allWant = append(allGot, got...), append(allWant, want[i]...)
			}
			if e := relative(allGot, allWant); !(e < 1e-5) {
				t.Errorf("relative error %.2g of the whole update", e)
			}
		})
	}
}
