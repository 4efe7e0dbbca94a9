package watchdog

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// perSecond is the kernel's unit of time in /proc: USER_HZ, 100 on every
// architecture that Go runs on.
const perSecond = 100

// children is the processor time of the processes that this one started and that
// run, and of their own that have ended (proc_pid_stat(5)); none where the kernel
// does not list them.
func children() (sum time.Duration) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // the thread may be gone
		for _, pid := range bytes.Fields(pids) {
			stat, err := os.ReadFile("/proc/" + string(pid) + "/stat")
			if err != nil {
				continue // it has ended
			}
			// The second field, in brackets, is the only one with spaces.
			fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
			if len(fields) < 15 {
				continue
			}
			for _, ticks := range fields[11:15] { // utime, stime, cutime, cstime
				n, _ := strconv.ParseInt(string(ticks), 10, 64)
				sum += time.Duration(n) * time.Second / perSecond
			}
		}
	}
	return sum
}
