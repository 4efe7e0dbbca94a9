package compiler_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/quant/nf4"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// steps runs n steps and returns the hash of the state.
func steps(t *testing.T, in *wasm.Instance, n int) string {
	t.Helper()
	for range n {
		if err := in.Step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := in.StateSHA256()
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum[:])
}

// relaxedFlags are what this node needs for relaxed SIMD; false: it has none, or rounds twice.
func relaxedFlags(t *testing.T, node string) ([]string, bool) {
	t.Helper()
	for _, flags := range [][]string{nil, {"--experimental-wasm-relaxed-simd"}} {
		probe := exec.CommandContext(watchdog.Context(t), node, append(flags, "../../lab/bench/wasm/fuses.mjs")...)
		if probe.Run() == nil {
			return flags, true
		}
	}
	return nil, false
}

// nodeSteps runs n steps in V8, on so many worker threads.
func nodeSteps(t *testing.T, bin []byte, in *wasm.Instance, n, workers int, flags ...string) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: V8 not compared")
	}
	dir := t.TempDir()
	prog, inputs := filepath.Join(dir, "p.wasm"), filepath.Join(dir, "in.bin")
	var snap bytes.Buffer
	if err := in.Snapshot(&snap); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(prog, bin, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inputs, snap.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(watchdog.Context(t), node,
		append(flags, "../../lab/bench/wasm/run_program.mjs", prog, inputs, "--json", "--steps", strconv.Itoa(n),
			"--cores", strconv.Itoa(workers))...).Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var r struct {
		Sum string `json:"state_sha256"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r.Sum
}

// trainedToys are the programs whose hosts must agree, by name.
func trainedToys() map[string]bert {
	adam := bertToy
	adam.optimizer, adam.hidden, adam.ffn, adam.seq = "adamw", 20, 35, 9
	nf4 := bertToy
	nf4.nf4, nf4.hidden, nf4.optimizer = true, 24, "momentum"
	return map[string]bert{"sgd": bertToy, "adamw": adam, "nf4": nf4}
}

// TestHostsAgree trains 20 steps in wazero's compiler, with every kernel for the declared products, in wazero's
// interpreter and in V8, in both code shapes: the state must be the same to the last bit.
func TestHostsAgree(t *testing.T) {
	for name, b := range trainedToys() {
		t.Run(name, func(t *testing.T) {
			want := ""
			check := func(what, got string) {
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s: state %s, want %s", what, got, want)
				}
			}
			for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
				bin, s := program(t, b, host)
				for _, p := range s.params {
					if p.Name == "learning_rate" {
						p.f32[0] = 0.05 // trains, where the default shows gradients
					}
				}
				check(host+" shape in V8", nodeSteps(t, bin, instance(t, bin, s, wasm.Config{}), 20, 1))
				for _, kernel := range append(wasm.Kernels(), "go") {
					for _, cores := range []int{1, 2} {
						in := instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: cores})
						check(fmt.Sprintf("%s shape in wazero, products by %s on %d cores", host, kernel, cores), steps(t, in, 20))
					}
				}
				check(host+" shape in the interpreter", steps(t, instance(t, bin, s, wasm.Config{Interpreter: true}), 20))
			}
		})
	}
}

// TestFusedHostsAgree is TestHostsAgree for fused programs: every kernel, the plain one and V8 with relaxed SIMD; and
// they must not have computed what exact programs compute.
func TestFusedHostsAgree(t *testing.T) {
	for name, b := range trainedToys() {
		t.Run(name, func(t *testing.T) {
			teach := func(s *step) {
				for _, p := range s.params {
					if p.Name == "learning_rate" {
						p.f32[0] = 0.05
					}
				}
			}
			bin, s := compile(t, b, compiler.HostWazero, true)
			teach(s)
			want := steps(t, instance(t, bin, s, wasm.Config{Kernel: "go"}), 20)
			check := func(what, got string) {
				if got != want {
					t.Errorf("%s: state %s, want %s", what, got, want)
				}
			}
			for _, kernel := range wasm.FusedKernels() {
				for _, cores := range []int{1, 2} {
					in := instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: cores})
					check(fmt.Sprintf("products by %s on %d cores", kernel, cores), steps(t, in, 20))
				}
			}
			check("the interpreter", steps(t, instance(t, bin, s, wasm.Config{Interpreter: true}), 20))
			exact, es := compile(t, b, compiler.HostWazero, false)
			teach(es)
			if steps(t, instance(t, exact, es, wasm.Config{}), 20) == want {
				t.Error("fused and exact programs agree: one of them is the other")
			}
			v8, _ := compile(t, b, compiler.HostV8, true)
			if _, err := wasm.Load(t.Context(), v8, wasm.Config{}); !errors.Is(err, wasm.ErrRefused) {
				t.Errorf("wazero and relaxed SIMD: %v", err)
			}
			node, err := exec.LookPath("node")
			if err != nil {
				t.Skip("node is not installed: V8 not compared")
			}
			flags, ok := relaxedFlags(t, node)
			if !ok {
				t.Skip("this node has no fused relaxed SIMD")
			}
			check("V8", nodeSteps(t, v8, instance(t, bin, s, wasm.Config{}), 20, 1, flags...))
		})
	}
}

// TestDeterminism compiles the same graph twice.
func TestDeterminism(t *testing.T) {
	a, _ := program(t, bertTiny, compiler.HostV8)
	b, _ := program(t, bertTiny, compiler.HostV8)
	if !bytes.Equal(a, b) {
		t.Error("the same graph gave different programs")
	}
}

// TestTraining overfits one batch: the loss must fall, in every optimizer, and NF4 must start near the plain loss.
func TestTraining(t *testing.T) {
	for _, opt := range []string{"sgd", "momentum", "adamw"} {
		b := bertToy
		b.optimizer = opt
		var first []float64
		for _, nf4 := range []bool{false, true} {
			b.nf4, b.hidden = nf4, 32
			bin, s := program(t, b, compiler.HostWazero)
			for _, p := range s.params {
				if p.Name == "learning_rate" {
					p.f32[0] = 0.02
				}
			}
			in := instance(t, bin, s, wasm.Config{})
			var losses []float64
			for i := range 40 {
				if err := in.WriteFloat32("step", []float32{float32(i + 1)}); err != nil {
					t.Fatal(err)
				}
				if err := in.Step(context.Background()); err != nil {
					t.Fatal(err)
				}
				var loss [1]float32
				if err := in.ReadFloat32("loss", loss[:]); err != nil {
					t.Fatal(err)
				}
				losses = append(losses, float64(loss[0]))
			}
			first = append(first, losses[0])
			if last := losses[len(losses)-1]; !(last < 0.8*losses[0]) {
				t.Errorf("%s, nf4 %v: loss went from %.4f to %.4f", opt, nf4, losses[0], last)
			}
		}
		if d := math.Abs(first[0] - first[1]); d > 0.5 {
			t.Errorf("%s: first loss %.4f plain, %.4f with NF4", opt, first[0], first[1])
		}
	}
}

// TestNF4EqualsDecoded holds a program with 4-bit weights against one with the same weights decoded beforehand: the
// arithmetic is the same, so every bit must be.
func TestNF4EqualsDecoded(t *testing.T) {
	for _, hidden := range []int{24, 20, 64} { // aligned rows and not
		b := bertToy
		b.nf4, b.hidden, b.ffn, b.vocab = true, hidden, 2*hidden, 51
		packed, s := program(t, b, compiler.HostWazero)
		b.nf4 = false
		plain, d := program(t, b, compiler.HostWazero)
		for i, p := range s.params {
			if p.NF4 {
				codes := make([]byte, nf4.CodesLen(len(p.f32)))
				scales := make([]float32, nf4.Blocks(len(p.f32), 64))
				if err := nf4.Encode(codes, scales, p.f32, 64); err != nil {
					t.Fatal(err)
				}
				nf4.Decode(d.params[i].f32, codes, scales, 64)
			}
		}
		got := steps(t, instance(t, packed, s, wasm.Config{}), 3)
		want := steps(t, instance(t, plain, d, wasm.Config{}), 3)
		if got != want {
			t.Errorf("hidden %d: 4-bit weights train to another state than their decoded values", hidden)
		}
	}
}
