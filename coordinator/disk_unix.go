//go:build unix

package coordinator

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes returns the space that is left on the disk of a folder, if it is known.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("coordinator: free space of %s: %w", dir, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
