package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// slacken has the kernel wake the processes that this goroutine starts so late.
func slacken(d time.Duration) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d.Nanoseconds()), 0, 0, 0) // else it is the kernel's own
}
