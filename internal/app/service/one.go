package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/progress"
	"github.com/starling-fl/starling/internal/app/rehearsal"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/web"
)

// runOne serves one job until it is done, and reports what it released.
func (c *Config) runOne(ctx context.Context, begun *bool) (evaluation.Printer, error) {
	start := time.Now()
	j, err := job.Load(c.Job)
	if err != nil {
		return nil, err
	}
	p, err := c.open()
	if err != nil {
		return nil, err
	}
	defer p.close()
	cfg := p.coordinator()
	cfg.Job, cfg.Dir = j, c.Dir
	if err := p.kept.Load(ctx, &cfg, c.Dir); err != nil {
		return nil, err
	}
	b := cfg.Base
	bases.SayTask(c.Stderr, j.Task != "", b)
	j = j.ForBase(b.Config)
	layout, err := outcome.Layout(j, b)
	if err != nil {
		return nil, err
	}
	splits, err := evaluation.ReadSplits(c.Validation, c.Test, c.Columns, j, b)
	if err != nil {
		return nil, err
	}
	if c.Drawn {
		view := progress.NewView(c.Stderr, j, splits.Note())
		view.Learning = splits.Learning(j.Rounds)
		cfg.Progress = view.Show
	}
	splits.Choose(&cfg)
	served := server.Config{Pages: Pages(c.Stderr), Version: c.Version, Origins: c.Origins, Gateways: c.throughGateways(), SignIn: p.issuer, Trusted: p.trusted}
	if served.Sample, served.SampleName, err = c.loadSample(j.Labels); err != nil {
		return nil, err
	}
	var of *coordinator.Coordinator
	defer p.kept.End(ctx)
	if err := p.whenMine(ctx, begun, func() (err error) {
		p.kept.Release(ctx, &cfg, "")
		of, err = coordinator.New(cfg)
		return err
	}); err != nil {
		return nil, err
	}
	c.rehearse(of, b)
	s, err := server.New(of, served)
	if err != nil {
		return nil, errors.Join(err, of.Close())
	}
	runErr := p.serveOne(ctx, of, s)
	result := of.Result()
	err = of.Close()
	spent := errors.Is(runErr, coordinator.ErrBudget)
	if spent {
		runErr = fmt.Errorf("the budget is spent after %d of %d rounds: %w. A new job in another folder that begins with its checkpoint (adapter.start) has a budget of its own",
			result.Rounds, j.Rounds, runErr)
	}
	if err != nil || runErr != nil && !(spent && result.Rounds > 0) { // what was released is a result
		return nil, errors.Join(runErr, err)
	}
	r := outcome.Report{Task: j.Name, Devices: j.Cohort.Population}
	r.Settle(j, result)
	r.Parts = &result.Parts
	r.Seconds = time.Since(start).Seconds()
	report, err := splits.Report(ctx, r, layout, result, c.EveryRank)
	if err != nil {
		return nil, errors.Join(runErr, err)
	}
	return report, runErr
}

// rehearse tells the operator what devices whose owners have set nothing would ask them about.
func (c *Config) rehearse(of *coordinator.Coordinator, b *model.Base) {
	r, err := rehearsal.Announced(of.Announced(), b)
	if err == nil {
		r.Weigh(of.Rho(), of.Job())
		err = r.Print(c.Stderr)
	}
	if err != nil {
		fmt.Fprintln(c.Stderr, "note: cannot tell how devices would respond to the job:", err)
	}
}

// loadSample reads the file for visitors as it is, once it is known that they could
// join with it.
func (c *Config) loadSample(labels []string) ([]byte, string, error) {
	if c.Sample == "" {
		return nil, "", nil
	}
	if _, err := evaluation.ReadPublic(c.Sample, c.Columns, labels); err != nil {
		return nil, "", fmt.Errorf("--sample: %w", err)
	}
	if info, err := os.Stat(c.Sample); err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("--sample: %s is a folder, and visitors get one file: give a table of pixels (.csv)", c.Sample)
	}
	b, err := os.ReadFile(c.Sample)
	return b, filepath.Base(c.Sample), err
}

// serveOne serves devices until the job is done.
func (p *parts) serveOne(ctx context.Context, c *coordinator.Coordinator, s *server.Server) error {
	run := func(ctx context.Context) error {
		err := c.Run(ctx)
		farewell(ctx, c, p.Linger)
		if ctx.Err() != nil && err != nil {
			err = errors.New("interrupted; start the same command again to go on with the next round")
		}
		return err
	}
	return p.serve(ctx, s, c.Log(), c, func(e *server.Endpoint, url string) error {
		if p.URL != "" || !loopback(e) {
			if err := c.RequireSecret(); err != nil {
				return err
			}
		}
		token := s.Token(url, e.Pin)
		if err := c.Reached(token); err != nil {
			return err
		}
		trusted := ""
		if p.URL == "" && loopback(e) { // only this machine reaches it, and its operator is here
			trusted = " --trust-local"
		}
		fault := web.Fault(edge.Protocol())
		fmt.Fprintf(p.Stderr, "listening on %s\njoin with: starling join %s --data FILE%s\n%s", e.Listener.Addr(), token, trusted, forBrowsers(fault, url, token))
		for _, origin := range p.Origins {
			fmt.Fprintf(p.Stderr, "pages of %s may take part, too\n", origin)
		}
		if link, local := s.JoinLink(); fault == "" {
			printQR(p.Stderr, link, local, p.QR)
		}
		return nil
	}, func(_ *server.Endpoint, dashboard string) error {
		fmt.Fprintf(p.Stderr, "dashboard, for the operator alone: %s\n", Dashboard(dashboard, s.AdminToken()))
		return nil
	}, run)
}

// loopback reports whether nobody but this machine reaches an endpoint.
func loopback(e *server.Endpoint) bool {
	a, ok := e.Listener.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// farewell lets connected devices read that the job is over, browsers take the
// model along, and those that are just reconnecting ask.
func farewell(ctx context.Context, c *coordinator.Coordinator, linger time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, c.EndPatience(max(linger, time.Second)))
	defer cancel()
	late := time.After(linger)
	c.Wait(ctx)
	select {
	case <-late:
	case <-ctx.Done():
	}
}
