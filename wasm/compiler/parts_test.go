package compiler_test

import (
	"os/exec"
	"testing"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestPartsAgree trains with products in parts: on one worker and on three at once, in V8, where they pack panels side by
// side in one memory, and on the kernels of this host. The bits must be the same.
func TestPartsAgree(t *testing.T) {
	nf4 := bertTiny
	nf4.nf4 = true
	for name, b := range map[string]bert{"f32": bertTiny, "nf4": nf4} {
		for _, fused := range []bool{false, true} {
			if fused && b.nf4 {
				continue
			}
			bin, s := compile(t, b, compiler.HostV8, fused)
			var all, cut uint64
			report, err := wasm.Verify(bin, wasm.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range report.Manifest.Products {
				if all += p.MultiplyAdds(); p.Parts != nil {
					cut += p.MultiplyAdds()
				}
			}
			if 10*cut < 9*all {
				t.Errorf("%d of %d multiply-adds are in products of parts", cut, all)
			}
			native, _ := compile(t, b, compiler.HostWazero, fused)
			in := instance(t, native, s, wasm.Config{Kernel: "go"})
			var flags []string
			if node, err := exec.LookPath("node"); err == nil && fused {
				var ok bool
				if flags, ok = relaxedFlags(t, node); !ok {
					t.Skip("this node has no fused relaxed SIMD")
				}
			}
			alone, three := nodeSteps(t, bin, in, 3, 1, flags...), nodeSteps(t, bin, in, 3, 3, flags...)
			if want := steps(t, in, 3); alone != want || three != want {
				t.Errorf("%s, fused %v: state %s on one worker, %s on three, %s natively", name, fused, alone, three, want)
			}
		}
	}
}
