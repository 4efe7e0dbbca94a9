//go:build unix

package server

import "syscall"

// limitFiles gives this process as few open files as a victim has.
func limitFiles() error {
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: victimFiles, Max: victimFiles})
}
