package wasm

import (
	"bytes"
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
		t.Fatal("the changed probe is no module")
	}
	if fuses(twice) {
		t.Error("two roundings passed for one")
	}
	t.Logf("this engine fuses: %v", Fuses())
}
