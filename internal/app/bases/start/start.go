// Package start reads adapters of others: the one that a job begins with, and those that are imported as a checkpoint.
package start

import (
	"fmt"
	"os"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/peft"
)

// Load reads the adapter that a job begins with over its base; nil if it names none.
func Load(j job.Job, b *model.Base) (*model.Adapter, error) {
	dir := j.Adapter.Start
	if dir == "" {
		return nil, nil
	}
	if bases.IsCheckpoint(dir) {
		ck, err := model.ReadCheckpoint(dir)
		if err != nil {
			return nil, fmt.Errorf("adapter.start: %w", err) // it names the folder
		}
		return ck.Adapter, sameBase(ck.Base, b)
	}
	a, err := peft.Load(os.DirFS(dir), b, j.Method().Task, len(j.Labels), nil)
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
