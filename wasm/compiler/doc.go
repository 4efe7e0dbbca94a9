// Package compiler turns a GoMLX graph into a WebAssembly program: it is a backend of github.com/gomlx/compute that
// records operations instead of running them, plans them (fusion, layouts, a static arena) and writes one small module
// of fixed-width SIMD code without imports. Compile makes the programs that edges train with; Backend runs single
// graphs through package wasm, so that the backend API's own compliance suite can be held against the same code.
//
//	program, err := compiler.Compile(build, compiler.Spec{Host: "wazero"})
//
// Path of a graph: ir records and simplifies, plan lays out memory and turns operations into loops and matrix
// products, codegen writes functions with the emitter in emit.
//
// Results do not depend on the host: the two code shapes ("wazero" and "v8") do the same floating-point operations in
// the same order, and no instruction of WebAssembly whose value an engine may choose is used, NaN bits apart.
//
// Threat model: the compiler trusts the graph that it is given (it is the coordinator's own). Its output is checked by
// package wasm's verifier before an edge runs it; nothing here is trusted by an edge.
package compiler
