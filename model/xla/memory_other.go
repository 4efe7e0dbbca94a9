//go:build xla && cgo && !linux

package xla

// keepMemory does nothing here: it is glibc's habit that it is about.
func keepMemory() {}
