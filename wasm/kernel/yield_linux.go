package kernel

import (
	"runtime"
	"syscall"
)

// yield lets others have this processor: goroutines, and threads of this or another process. Where cores are short
// who spins may be in the way of whom it waits for.
func yield() {
	runtime.Gosched()
	_, _, _ = syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
}
