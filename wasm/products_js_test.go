package wasm

import (
	"bytes"
	"errors"
	"strings"
	"syscall/js"
	"testing"
)

// TestProbe: a host that rounds twice, as relaxed SIMD may, does not claim to fuse.
func TestProbe(t *testing.T) {
	// x * y + z in place of one instruction: three bytes more.
	twice := bytes.Replace(maddProbe, []byte("\x0a\x1f\x01\x1d\x00\x20\x00\x20\x00\xfd\x00\x04\x00"),
		[]byte("\x0a\x22\x01\x20\x00\x20\x00\x20\x00\xfd\x00\x04\x00"), 1)
	twice = bytes.Replace(twice, []byte("\x20\x00\xfd\x00\x04\x20\xfd\x85\x02"),
		[]byte("\xfd\xe6\x01\x20\x00\xfd\x00\x04\x20\xfd\xe4\x01"), 1)
	code := js.Global().Get("Uint8Array").New(len(twice))
	js.CopyBytesToJS(code, twice)
	if !js.Global().Get("WebAssembly").Call("validate", code).Bool() {
		t.Fatal("the changed probe is not a module")
	}
	if fuses(twice) {
		t.Error("two roundings passed for one")
	}
	t.Logf("this engine fuses: %v", Fuses())
}

// TestTeam: several workers compute the parts of a product, and the instance's end is
// theirs.
func TestTeam(t *testing.T) {
	if js.Global().Get("starlingTeam").Type() != js.TypeFunction {
		t.Skip("no workers: TestUnderJS brings them")
	}
	in := instance(t, load(t, partGEMM(), Config{Cores: 3}))
	check(t, in.WriteFrozen("codes", make([]float32, 99)), in.Step(t.Context()))
	host := in.host.(*jsInstance)
	if host.team.IsUndefined() {
		t.Fatal("one worker computes alone")
	}
	if host.buffer.Get("constructor").Get("name").String() != "SharedArrayBuffer" {
		t.Error("the memory is not shared")
	}
	check(t, in.Close())
	// A budget is an instance's own, which workers could not share.
	budgeted := partGEMM()
	budgeted.noFuel = false
	if in := instance(t, load(t, budgeted, Config{Cores: 3})); !in.host.(*jsInstance).team.IsUndefined() {
		t.Error("workers share a loop budget")
	}
	// The step traps, whichever helper computes the part that does.
	for part := range 2 {
		m := partGEMM()
		m.funcs[part].body = code(m.funcs[part].body, opUnreachable)
		in := instance(t, load(t, m, Config{Cores: 2}))
		check(t, in.WriteFrozen("codes", make([]float32, 99)))
		for range 3 {
			if err := in.Step(t.Context()); !errors.Is(err, ErrTrap) || !strings.Contains(err.Error(), "product 0") {
				t.Errorf("part %d: %v", part, err)
			}
		}
	}
}
