package disk

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Free is the space that is left on the disk of a folder, in bytes; the largest number where it is not known.
func Free(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return free, nil
}
