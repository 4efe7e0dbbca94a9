// Package program makes the WebAssembly programs that a job's devices run, of the job
// and its base: a coordinator for its devices, a device for itself, to run no other
// (Remake), an owner to know their hashes. The compiler makes the same bytes everywhere.
//
// Threat model: a recipe and a base come from a coordinator that may be hostile. Remake
// bounds the work before it begins and leaves off when its context ends. What comes out
// is verified by package wasm like any program.
package program
