//go:build !amd64

package kernel

// native: on other processors WebAssembly code of 128 bits is what there is.
func native() []*Kernel { return nil }
