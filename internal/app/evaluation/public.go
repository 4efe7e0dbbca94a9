package evaluation

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
)

// publicFolder is where a server of several jobs has the files that measure them: an operator who
// submits a job from elsewhere has it measured on no other file. Its base and adapter.start are
// folders of the server's wherever they lie, but must be a model's and an adapter's.
const publicFolder = "public"

// publicPath is where in a server's folder a job's validation_file lies.
func publicPath(dir, name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", usage.Errorf("validation_file is %.80q: one of a server's jobs names a file in %s/ of the server's folder, from there on", name, publicFolder)
	}
	return filepath.Join(dir, publicFolder, name), nil
}

// CheckHosted refuses a job whose validation_file the server of a folder does not find, or cannot
// read; of a server elsewhere, whose folder is "", only the name can be judged.
func CheckHosted(dir string, j job.Job) error {
	if j.ValidationFile == "" {
		return nil
	}
	path, err := publicPath(dir, j.ValidationFile)
	if err != nil || dir == "" {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return usage.Errorf("validation_file is %.80q, a path within %s/ of the server's folder: put that file to %s first (%v)",
			j.ValidationFile, publicFolder, path, err)
	}
	if _, err := ReadPublic(path, dataset.Columns{}, j.Labels); err != nil {
		return fmt.Errorf("validation_file: %w", err)
	}
	return nil
}

// MeasureHosted has one of a server's jobs measured on its validation_file, if it has one.
func MeasureHosted(cfg *coordinator.Config, dir string) (err error) {
	j := cfg.Job.ForBase(cfg.Base.Config)
	if j.ValidationFile == "" {
		return nil
	}
	if j.ValidationFile, err = publicPath(dir, j.ValidationFile); err != nil {
		return err
	}
	splits, err := ReadSplits("", "", dataset.Columns{}, j, cfg.Base)
	if err != nil {
		return err
	}
	splits.Choose(cfg)
	return nil
}
