package participation

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// politeness is the nice value of a device that trains: beside busy work it gets
// a third of an equal share, on an idle machine all it can use.
const politeness = 5

// yieldToOthers lowers the priority of this process. On Linux that is a property of
// each thread, which new threads take from the one that starts them: so threads are
// gone through until a pass finds none at the old priority.
func yieldToOthers() error {
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		changed := false
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return fmt.Errorf("thread %q: %w", t.Name(), err)
			}
			// The call gives 20 less the nice value.
			if p, err := syscall.Getpriority(syscall.PRIO_PROCESS, id); err != nil || p <= 20-politeness {
				continue // gone, or done
			}
			err = syscall.Setpriority(syscall.PRIO_PROCESS, id, politeness)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return os.NewSyscallError("setpriority", err)
			}
			changed = true
		}
		if !changed {
			return nil
		}
	}
}
