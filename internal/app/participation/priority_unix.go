//go:build unix && !linux

package participation

import (
	"os"
	"syscall"
)

// yieldToOthers lowers the priority of this process below that of interactive work.
func yieldToOthers() error {
	return os.NewSyscallError("setpriority", syscall.Setpriority(syscall.PRIO_PROCESS, 0, 5))
}
