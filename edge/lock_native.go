//go:build !js

package edge

import (
	"os"

	"github.com/gofrs/flock"
)

// lockPart makes this the only one that continues with a download, until unlock is
// called. The lock has a file of its own, as one on the download itself would keep its
// writer out on Windows.
func lockPart(path string) (unlock func(), ok bool) {
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	if ok, err := l.TryLock(); err != nil || !ok {
		return nil, false
	}
	// What was opened before its holder removed it is locked by nobody, and nobody's
	// lock any more: another may have made a new one meanwhile.
	held, err := l.Stat()
	if now, errNow := os.Stat(l.Path()); err != nil || errNow != nil || !os.SameFile(held, now) {
		_ = l.Close()
		return nil, false
	}
	return func() {
		_ = os.Remove(l.Path()) // first: once unlocked it may be another's
		_ = l.Close()
	}, true
}
