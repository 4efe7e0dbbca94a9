package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/job"
)

// runSeveral serves the jobs that were submitted to Dir.
func (c *Config) runSeveral(ctx context.Context, begun *bool) error {
	p, err := c.open()
	if err != nil {
		return err
	}
	defer p.close()
	var site *server.Site
	defer p.kept.End(ctx)
	cfg := jobs.Config{
		Dir: c.Dir, MaxOpen: c.MostJobs, Log: c.Log,
		Open: func(j store.Hosted, dir string, host coordinator.Host) (*coordinator.Coordinator, error) {
			cfg := p.coordinator()
			cfg.Dir, cfg.Host = dir, host
			if c.Log != nil {
				cfg.Log = c.Log.With("job", j.Name)
			}
			var err error
			if cfg.Job, err = job.Parse(bytes.NewReader(j.File)); err != nil {
				return nil, err
			}
			if err := p.kept.Load(ctx, &cfg, dir); err != nil {
				return nil, err
			}
			if err := evaluation.MeasureHosted(&cfg, c.Dir); err != nil {
				return nil, err
			}
			p.kept.Release(ctx, &cfg, j.Folder)
			return coordinator.New(cfg)
		},
		Mount: func(j store.Hosted, of *coordinator.Coordinator) error {
			if err := site.Mount(j, of, j.Folder == "."); err != nil {
				return err
			}
			fmt.Fprintf(c.Stderr, "job %s: join with: starling join %s --data FILE\n", j.Name, site.Token(j.Name))
			return nil
		},
		Unmount: func(name string) { site.Unmount(name) },
	}
	var host *jobs.Host
	if err := p.whenMine(ctx, begun, func() (err error) {
		host, err = jobs.Open(cfg)
		return err
	}); err != nil {
		return err
	}
	if site, err = server.NewSite(server.SiteConfig{Host: host, Pages: Pages(c.Stderr), Trusted: p.trusted, Version: c.Version, Log: c.Log,
		Gateways: c.throughGateways(), SignIn: p.issuer, Accept: c.accept}); err != nil {
		return errors.Join(err, host.Close())
	}
	return errors.Join(p.serveSeveral(ctx, host, site), host.Close())
}

// accept refuses a job file that could not be run here.
func (c *Config) accept(file []byte) error {
	j, err := job.Parse(bytes.NewReader(file))
	if err != nil {
		return err
	}
	return evaluation.CheckHosted(c.Dir, j)
}

// serveSeveral puts the site on the network and runs its jobs.
func (p *parts) serveSeveral(ctx context.Context, host *jobs.Host, site *server.Site) error {
	if p.Epsilon != 0 || p.Delta != 0 {
		if err := host.Budget(p.Epsilon, p.Delta); err != nil {
			return fmt.Errorf("--fleet-epsilon %v, --fleet-delta %v: %w", p.Epsilon, p.Delta, err)
		}
	}
	err := p.serve(ctx, site, site.Log(), host, func(e *server.Endpoint, url string) error {
		return site.Reach(url, e.Pin)
	}, func(e *server.Endpoint, dashboard string) error {
		token, err := site.FleetToken()
		if err != nil {
			return err
		}
		fmt.Fprintf(p.Stderr, "listening on %s for the jobs of %s\njobs, for operators alone: starling job list --server %s; in a browser: %s\n",
			e.Listener.Addr(), p.Dir, dashboard, Dashboard(dashboard, site.AdminToken()))
		fmt.Fprintf(p.Stderr, "all jobs, those to come too, as a device's owner allows: starling join --fleet %s --data FILE --epsilon E\n", token)
		return nil
	}, host.Run)
	if ctx.Err() != nil && err == nil {
		err = errors.New("interrupted; start the same command again to go on with the next rounds")
	}
	return err
}
