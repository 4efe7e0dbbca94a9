// Package kernel computes the matrix products that a training program declares on
// the host's own vector units: with registers of 256 or 512 bits and on several
// cores, where WebAssembly has 128 bits and one.
//
//	pl, err := kernel.Prepare(product, len(memory))
//	...
//	err = k.Run(ctx, pl, memory, team) // k is one of kernel.Native
//
// An element of C = A * B is one chain: from +0, for every term in order, multiply,
// round, add, round; or, in a fused product, multiply, add, round. Nothing here
// changes that order, so every kernel, on any number of cores, gives the bits that
// the program's own code gives. Wider registers and more cores compute more
// elements side by side, and that is all.
//
// NaN is NaN in every kernel, but its payload and sign are left open, as
// WebAssembly leaves them (Core Specification 2.0, section 4.3.3): they depend on
// the order of operands in an instruction and on the processor. Everything else,
// infinities, denormal numbers and the sign of zero included, is equal bit for bit.
//
// Products are blocked after Goto and van de Geijn ("Anatomy of high-performance
// matrix multiplication", 2008). The innermost tiles are assembly that
// lab/assembly generates (tile_amd64.s, tile_arm64.s) and one twin in plain Go.
package kernel

//go:generate go run -C ../../lab ./assembly/kernel -out ../wasm/kernel/tile_amd64.s -stubs ../wasm/kernel/tile_amd64.go -pkg kernel
//go:generate go run -C ../../lab ./assembly/neon -out ../wasm/kernel/tile_arm64.s -stubs ../wasm/kernel/tile_arm64.go -pkg kernel
