package bases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// LoadStart reads the adapter that a job begins with; nil if it names none.
func LoadStart(j job.Job, b *model.Base) (*model.Adapter, error) {
	dir := j.Adapter.Start
	if dir == "" {
		return nil, nil
	}
	if IsCheckpoint(dir) {
		ck, err := model.ReadCheckpoint(dir)
		if err != nil {
			return nil, fmt.Errorf("adapter.start: %w", err) // it names the folder
		}
		return ck.Adapter, sameBase(ck.Base, b)
	}
	a, err := model.LoadPEFT(os.DirFS(dir), b, j.Method().Task, len(j.Labels), nil)
	if err != nil {
		return nil, fmt.Errorf("adapter.start: %s: %w", dir, err)
	}
	return a, nil
}

// sameBase refuses an adapter that was trained on other weights.
func sameBase(of, now *model.Base) error {
	x, err := of.SHA256()
	if err != nil {
		return err
	}
	y, err := now.SHA256()
	if err != nil {
		return err
	}
	if x != y {
		return fmt.Errorf("adapter.start: it was trained on the base %x, the job has %x", x, y)
	}
	return nil
}

// IsCheckpoint reports whether a folder holds a released adapter.
func IsCheckpoint(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, model.CheckpointFile))
	return !errors.Is(err, fs.ErrNotExist)
}
