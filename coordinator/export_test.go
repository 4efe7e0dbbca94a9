package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/model"
)

// TestHostileFolderInTheWay: a checkpoint's folder that cannot be written costs no
// round; it is written once it can be.
func TestHostileFolderInTheWay(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "checkpoint")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tb := setTable(t, Config{Job: tinyJob(3), Dir: dir}, 3, nil)
	failed := false
	tb.onProgress = func(p monitor.Status) {
		if p.Version == 2 && !failed { // the first round's export has failed
			failed = tb.c.exporting.due
			if err := os.Remove(inTheWay); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	ck, err := model.ReadCheckpoint(inTheWay)
	if err != nil || ck.Version != 2 || !failed {
		t.Errorf("checkpoint %+v, failed before: %t, %v", ck, failed, err)
	}
}
