// Package resident is what memory other processes hold, for long runs that look for its growth.
package resident

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Set is a process's resident set in kB, or 0 if it has ended.
func Set(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0]) // 0 if there is none
	return kb
}
