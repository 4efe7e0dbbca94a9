// Package wasm runs training programs: small WebAssembly modules that hold one
// whole local training step (forward, backward, optimizer) with its shapes
// fixed. Natively a program runs under wazero, in a browser (GOOS=js) on the
// browser's own engine; the Go API and the results, bit for bit, are the same.
//
// The module format follows the WebAssembly Core Specification 2.0 (section 5,
// binary format) with fixed-width SIMD. What a program may contain, and the
// custom section "starling.program" that describes its tensors and segments, is
// defined here; package wasm/compiler emits it. docs/WASM.md is the prose.
//
// # Threat model
//
// A program comes from a stranger: an edge runs what its coordinator sent. The
// loader must hold against any bytes. A program that passes Verify
//
//   - has no imports, tables or start function: it can reach nothing but its own
//     linear memory, whose size is declared, fixed and limited;
//   - ends: there is no recursion, every loop is either proved to run a constant
//     number of times or draws on a budget that the host sets before each
//     segment, and the sum is limited per segment. The host looks at its
//     context between segments, so a step can be cancelled within one segment;
//   - costs the host a bounded amount of memory and compile time.
//
// What it does not promise: that the arithmetic is the training step somebody
// expected. A program that answers only for one device's data is outside what a
// loader can see; program hashes that can be audited are the defence there.
package wasm
