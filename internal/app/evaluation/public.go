package evaluation

import (
	"fmt"
	"os"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
)

// CheckHosted refuses a submitted job that the server of a folder could not run as its file says; of a server
// elsewhere, whose folder is "", only what the file itself says can be judged.
func CheckHosted(dir string, j job.Job) error {
	if j.Enrolment.Secret != "" {
		return usage.Errorf("enrolment.secret: the jobs of a server share the server's own: take it out of the job file")
	}
	if dir != "" {
		if _, err := bases.Hosted(dir, j); err != nil {
			return err
		}
	}
	if j.ValidationFile == "" {
		return nil
	}
	path, err := bases.Public(dir, "validation_file", j.ValidationFile)
	if err != nil || dir == "" {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return usage.Errorf("validation_file is %.80q, a path within %s/ of the server's folder: put that file to %s first (%v)",
			j.ValidationFile, bases.PublicFolder, path, err)
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
	if j.ValidationFile, err = bases.Public(dir, "validation_file", j.ValidationFile); err != nil {
		return err
	}
	splits, err := ReadSplits("", "", dataset.Columns{}, j, cfg.Base)
	if err != nil {
		return err
	}
	splits.Choose(cfg)
	return nil
}
