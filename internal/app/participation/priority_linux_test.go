package participation

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// TestYieldToOthers lowers the priority of a process of its own, as there is no way
// back up, and looks at every thread of it.
func TestYieldToOthers(t *testing.T) {
	if os.Getenv("STARLING_TEST_YIELD") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestYieldToOthers$")
		cmd.Env = append(os.Environ(), "STARLING_TEST_YIELD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := yieldToOthers(); err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		if p, err := syscall.Getpriority(syscall.PRIO_PROCESS, id); err == nil && p > 20-politeness {
			t.Errorf("thread %d runs at nice %d, want %d", id, 20-p, politeness)
		}
	}
}
