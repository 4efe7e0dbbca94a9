package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// guard closes the folder to others, and refuses files of it that were open to
// them: what they hold may have been read or replaced, which only the operator can
// judge.
func guard(dir string) error {
	if runtime.GOOS == "windows" { // has access lists in place of modes
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("%w: folder %s has mode %04o and cannot be closed: %w", ErrMode, dir, info.Mode().Perm(), err)
		}
	}
	for _, name := range []string{FileName, FileName + "-wal", FileName + "-shm", "lock", "tls.pem", URLFile} {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("store: %w", err)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%w: %s is not a regular file", ErrMode, path)
		case info.Mode().Perm()&0o077 != 0:
			return fmt.Errorf("%w: %s has mode %04o; if nobody has read or changed it: chmod 600 %s", ErrMode, path, info.Mode().Perm(), path)
		}
	}
	return nil
}
