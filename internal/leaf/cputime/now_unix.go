//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Now is the processor time that this process has had, user and system.
func Now() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of valid arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
