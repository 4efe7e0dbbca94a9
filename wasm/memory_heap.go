//go:build !(js || linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package wasm

import "context"

// withMemory leaves the linear memory to wazero, which takes it from Go's heap.
func withMemory(ctx context.Context) context.Context { return ctx }
