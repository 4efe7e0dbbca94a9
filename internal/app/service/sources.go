package service

import (
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
	}
	return shelf.New(from, c.Dir, sources{}, c.Log), nil
}

// sources are bases and starts as a job names them: embedded, in a folder, or published.
type sources struct{}

func (sources) Base(j job.Job) (*model.Base, error) { return bases.ForJob(j) }

func (sources) Fill(cfg *coordinator.Config) (err error) {
	if cfg.Base, err = bases.ForJob(cfg.Job); err != nil {
		return err
	}
	if cfg.Start, err = start.Load(cfg.Job.ForBase(cfg.Base.Config), cfg.Base); err != nil {
		return err
	}
	cfg.BaseName, cfg.BaseRevision, err = bases.Published(cfg.Job)
	return err
}
