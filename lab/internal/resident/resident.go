// Package resident measures the memory that processes hold, for runs that look for its growth or its peak.
package resident

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Set is a process's resident set in kB, or 0 if it has ended.
func Set(pid int) int { return status(pid, "VmRSS:") }

// Peak returns the largest resident size so far.
func Peak(pid int) int { return status(pid, "VmHWM:") }

func status(pid int, field string) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), field)
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0]) // 0 if there is none
	return kb
}
