//go:build unix

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free is the space that is left on the disk of a folder, in bytes; the largest number where it is not known.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
