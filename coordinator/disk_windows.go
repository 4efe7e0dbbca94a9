package coordinator

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// freeBytes returns the space that is left on the disk of a folder, if it is known.
func freeBytes(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, fmt.Errorf("coordinator: free space of %s: %w", dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("coordinator: free space of %s: %w", dir, err)
	}
	return free, nil
}
