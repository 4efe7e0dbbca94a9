package main

import "github.com/starling-fl/starling/wasm"

// The peak program multiplies and adds in registers only: what an engine can
// reach at best on this machine with 128-bit SIMD and no fused multiply-add. It
// is the mark that a matrix product is held against, beside OpenBLAS, which has
// the machine's wide registers and its fused instruction.
const (
	peakAccumulators = 14 // half of them multiply, half add: no chain waits for another
	peakUnroll       = 4
	peakTrips        = 50_000
	peakName         = "peak-mul-add"
)

// peakProgram is hand-assembled; see the Core Specification, section 5, for the
// numbers.
func peakProgram() ([]byte, error) {
	m := &wasm.Manifest{
		Format: wasm.Format, Name: peakName, Compiler: "bench", Host: "wazero",
		FLOPs:   4 * peakAccumulators * peakUnroll * peakTrips,
		Arena:   wasm.Region{Offset: 1024},
		Outputs: []wasm.Tensor{{Name: "sums", DType: wasm.Float32, Shape: []int{4 * peakAccumulators}, Offset: 0}}, Segments: []wasm.Segment{{}},
	}
	const counter, scale, bias = 0, 1, 2 // locals; the accumulators follow
	var step []byte
	for range peakUnroll {
		for i := range byte(peakAccumulators) {
			acc := 3 + i
			if i%2 == 0 { // acc *= scale
				step = append(step, 0x20, acc, 0x20, scale, 0xfd, 0xe6, 0x01, 0x21, acc)
			} else { // acc += bias
				step = append(step, 0x20, acc, 0x20, bias, 0xfd, 0xe4, 0x01, 0x21, acc)
			}
		}
	}
	splat := func(f []byte, local byte) []byte { // local = f32x4.splat(f)
		return append(append(append([]byte{0x43}, f...), 0xfd, 0x13), 0x21, local)
	}
	body := []byte{2, 1, 0x7f, 2 + peakAccumulators, 0x7b}
	body = append(body, splat([]byte{0, 0, 0x80, 0xbf}, scale)...) // -1
	body = append(body, splat([]byte{0, 0, 0x80, 0x3f}, bias)...)  // 1
	body = append(body, 0x41)
	body = append(body, sleb(peakTrips)...)
	body = append(body, 0x21, counter, 0x03, 0x40)
	body = append(body, step...)
	body = append(body, 0x20, counter, 0x41, 1, 0x6b, 0x22, counter, 0x0d, 0, 0x0b)
	for i := range byte(peakAccumulators) {
		body = append(body, 0x41, 0, 0x20, 3+i, 0xfd, 0x0b, 4)
		body = append(body, uleb(16*int(i))...)
	}
	body = append(body, 0x0b)

	out := []byte("\x00asm\x01\x00\x00\x00")
	out = append(out, 1, 4, 1, 0x60, 0, 0) // type () -> ()
	out = append(out, 3, 2, 1, 0)
	out = append(out, 5, 4, 1, 1, 1, 1) // one page
	out = append(out, 7, 15, 2, 6, 'm', 'e', 'm', 'o', 'r', 'y', 2, 0, 2, 's', '0', 0, 0)
	code := append([]byte{1}, append(uleb(len(body)), body...)...)
	out = append(append(append(out, 10), uleb(len(code))...), code...)
	return m.AppendSection(out)
}

// uleb and sleb encode small non-negative numbers as LEB128.
func uleb(v int) []byte {
	var b []byte
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func sleb(v int) []byte {
	b := uleb(v)
	if b[len(b)-1]&0x40 != 0 { // a set sign bit would make it negative
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}
