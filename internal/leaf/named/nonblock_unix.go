//go:build unix

package named

import "syscall"

// nonblock has open not wait for whoever writes a pipe, which a file may have become since it was looked at.
const nonblock = syscall.O_NONBLOCK
