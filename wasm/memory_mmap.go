//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package wasm

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemory lets instances have their linear memory outside Go's heap. A frozen
// base is most of an edge's memory: on the heap it would let the collector wait
// for as much garbage again before it runs, and stay with the process after the
// instance has gone.
func withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(mapMemory))
}

// mapMemory maps zeroed pages; the system backs them as they are touched. Where it
// refuses, the heap serves.
func mapMemory(_, size uint64) experimental.LinearMemory {
	if size == 0 {
		return &mapping{}
	}
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return &mapping{bytes: make([]byte, size)}
	}
	adviseHuge(b)
	return &mapping{bytes: b, mapped: true}
}

type mapping struct {
	bytes  []byte
	mapped bool
}

// Reallocate gives the first size bytes: a program's memory has one size only.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.bytes)) {
		return nil
	}
	return m.bytes[:size]
}

// Free unmaps. Instance's lock keeps it from happening under a running step.
func (m *mapping) Free() {
	if m.mapped {
		_ = syscall.Munmap(m.bytes) // cannot fail for a mapping of ours
	}
	m.bytes = nil
}
