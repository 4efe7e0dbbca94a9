// Package program compiles the WebAssembly programs that a job's devices run, from the job and its
// base. A coordinator makes them for its devices ([Step]), a device makes the same program again
// and runs no other ([Remake]), and an owner makes them to know their hashes. The compiler yields
// the same bytes everywhere.
//
//	recipe, err := program.Recipe(j)
//	...
//	module, err := program.Step(spec)
//
// Threat model: a recipe and a base come from a coordinator that may be hostile. Remake bounds the
// work before it begins, and stops when its context ends. The result is verified by package wasm
// like any program.
package program
