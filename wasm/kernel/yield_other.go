//go:build !linux

package kernel

import "runtime"

// yield lets other goroutines have this processor.
func yield() { runtime.Gosched() }
