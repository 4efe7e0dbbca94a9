//go:build !amd64 && !arm64

package kernel

// native: elsewhere WebAssembly code of 128 bits is what there is.
func native() []*Kernel { return nil }
