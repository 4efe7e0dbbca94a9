package operator

import (
	"fmt"
	"path/filepath"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/evaluation"
)

// publicFolder is where a server of several jobs has the files that measure them: an operator who
// submits a job from elsewhere has it measured on no other file. Its base and adapter.start are
// folders of the server's wherever they lie, but must be a model's and an adapter's.
const publicFolder = "public"

// publicFile is where in a server's folder a job's validation_file lies.
func publicFile(dir, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("validation_file is %.80q: one of a server's jobs names a file in %s/ of the server's folder, from there on", name, publicFolder)
	}
	return filepath.Join(dir, publicFolder, name), nil
}

// measureHosted has one of a server's jobs measured on its validation_file, if it has one.
func measureHosted(cfg *coordinator.Config, dir string) error {
	if cfg.Job.ValidationFile == "" {
		return nil
	}
	path, err := publicFile(dir, cfg.Job.ValidationFile)
	if err != nil {
		return err
	}
	splits, err := evaluation.ReadSplits(path, "", dataset.Columns{}, cfg.Job.ForBase(cfg.Base.Config), cfg.Base)
	if err != nil {
		return fmt.Errorf("validation_file: %w", err)
	}
	splits.Choose(cfg)
	return nil
}
