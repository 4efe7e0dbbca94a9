//go:build xla && cgo && linux

package xla

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void keep(void) {
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, -1);
	mallopt(M_ARENA_MAX, 1);
}
#else
static void keep(void) {}
#endif
*/
import "C"

// keepMemory lets glibc keep what a plugin frees. XLA takes its scratch space anew for
// every execution; given back to the kernel in between, it comes back page by page, each
// of them faulted in and cleared: an eighth of the processor time of MiniLM's step. The
// process then holds the most that it ever needed.
func keepMemory() { C.keep() }
