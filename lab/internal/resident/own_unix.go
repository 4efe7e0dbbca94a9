//go:build unix

package resident

import (
	"runtime"
	"syscall"
)

// Own is this process's largest resident set so far, in bytes.
func Own() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss * 1024
}
