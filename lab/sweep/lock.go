package sweep

import (
	"errors"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrBusy is a run that another process is making.
var ErrBusy = errors.New("another process is making this run")

// lock makes this process the only one that makes the run in a folder, until unlock. A
// file system without locks has none: both then come to the same, twice the work.
func lock(folder string) (unlock func(), err error) {
	l := flock.New(filepath.Join(folder, ".lock"), flock.SetPermissions(0o600))
	held, err := l.TryLock()
	if err == nil && !held {
		return nil, ErrBusy
	}
	return func() { _ = l.Close() }, nil
}
