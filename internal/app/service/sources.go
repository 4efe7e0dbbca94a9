package service

import (
	"fmt"
	"path/filepath"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/bucket"
	"github.com/starling-fl/starling/coordinator/shelf"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/bases/start"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// shelf opens the bucket of Blobs.
func (c *Config) shelf() (*shelf.Shelf, error) {
	var from *bucket.Bucket
	if c.Blobs != "" {
		var err error
		if from, err = bucket.Open(c.Blobs); err != nil {
			return nil, usage.Errorf("--blobs: %v", err)
		}
		if from.InClear() {
			fmt.Fprintln(c.Stderr, "warning: --blobs is reached over http: the network can read the base and the released models; use an https endpoint")
		}
	}
	return shelf.New(from, c.Dir, sources{c.Dir}, c.Log), nil
}

// sources are bases and starts as a job names them: embedded, in a folder, or published. Jobs that were
// submitted to a server, each in a folder below dir, name them as bases.Hosted says.
type sources struct{ dir string }

func (sources) Base(j job.Job) (*model.Base, error) { return bases.ForJob(j) }

func (s sources) Fill(cfg *coordinator.Config) (err error) {
	j := cfg.Job
	if filepath.Clean(cfg.Dir) != filepath.Clean(s.dir) {
		if j, err = bases.Hosted(s.dir, j); err != nil {
			return err
		}
	}
	if cfg.Base, err = bases.ForJob(j); err != nil {
		return err
	}
	if cfg.Start, err = start.Load(j.ForBase(cfg.Base.Config), cfg.Base); err != nil {
		return err
	}
	cfg.BaseName, cfg.BaseRevision, err = bases.Published(j)
	return err
}
