package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/spans"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/program"
)

// whenMine opens the state of --dir once no other coordinator holds it, in a database. Until then
// it lends that one its processors.
func (f serveFlags) whenMine(ctx context.Context, a *command.App, nc *nats.Conn, log *slog.Logger, open func() error) error {
	for {
		end := func() {}
		err := store.AwaitLease(ctx, f.dir, func() {
			fmt.Fprintln(a.Stderr, "standing by: another coordinator holds the lease of this state")
			if nc == nil {
				return
			}
			lent, err := relay.Lend(nc, orSilent(log))
			if err != nil {
				fmt.Fprintf(a.Stderr, "its rounds' masks are not added up here: %v\n", err)
				return
			}
			end = lent
		})
		end()
		if err == nil {
			err = open()
		}
		if !errors.Is(err, store.ErrLeased) { // else another one that stood by was faster
			return err
		}
	}
}

// exporter tells the collector of --trace-otlp of rounds; nil if there is none.
func (f serveFlags) exporter(a *command.App, log *slog.Logger) (*spans.Exporter, error) {
	if f.traces == "" {
		return nil, nil
	}
	e, err := spans.Open(f.traces, a.Version, log)
	if err != nil {
		return nil, usage.Errorf("--trace-otlp: %v", err)
	}
	return e, nil
}

// keep has the state of --dir kept in the database that --store names.
func (f serveFlags) keep() error {
	if f.store == "" {
		return nil
	}
	if err := store.UseDatabase(f.dir, f.store); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return nil
}

// runJobs serves the jobs that were submitted to a folder.
func runJobs(ctx context.Context, a *command.App, f serveFlags) error {
	for flag, given := range map[string]bool{"--validation": f.validation != "", "--test": f.test != "", "--test-every-rank": f.everyRank,
		"--sample": f.sample != "", "--witness": f.witness != "", "--allow-origin": len(f.origins) > 0, "--despite-dropout": f.despiteDropout, "--qr": f.qr} {
		if given {
			return usage.Errorf("%s is one job's: it goes with --job%s", flag, map[string]string{"--validation": ", or as validation_file into a job's file"}[flag])
		}
	}
	if err := f.keep(); err != nil {
		return err
	}
	if shared, err := store.IsShared(f.dir); err != nil {
		return err
	} else if !shared && f.store == "" {
		return usage.Errorf("no job was submitted to %s: give --job for one job alone, or begin a server of several: starling job submit --dir %s job.yaml", f.dir, f.dir)
	}
	log, err := f.log.Logger(a.Stderr)
	if err != nil {
		return err
	}
	trusted, err := f.proxies()
	if err != nil {
		return err
	}
	issuer, err := f.signIn.open(log)
	if err != nil {
		return err
	}
	traces, err := f.exporter(a, log)
	if err != nil {
		return err
	}
	defer traces.Close()
	kept, err := f.shelf(log)
	if err != nil {
		return err
	}
	nc, end, err := f.reach(log)
	if err != nil {
		return err
	}
	defer end()
	var site *server.Site
	defer kept.End(ctx)
	cfg := jobs.Config{
		Dir: f.dir, MaxOpen: f.mostJobs, Log: log,
		Open: func(j store.Hosted, dir string, host coordinator.Host) (*coordinator.Coordinator, error) {
			cfg := coordinator.Config{Dir: dir, Host: host, Traces: traces, Patient: true, Compile: program.Step, Hosts: program.Hosts}
			if nc != nil {
				cfg.SumMasks = relay.Borrow(nc).Sum
			}
			if log != nil {
				cfg.Log = log.With("job", j.Name)
			}
			var err error
			if cfg.Job, err = job.Parse(strings.NewReader(string(j.File))); err != nil {
				return nil, err
			}
			if err := kept.Load(ctx, &cfg, dir); err != nil {
				return nil, err
			}
			if err := measureHosted(&cfg, f.dir); err != nil {
				return nil, err
			}
			kept.Release(ctx, &cfg, j.Folder)
			return coordinator.New(cfg)
		},
		Mount: func(j store.Hosted, c *coordinator.Coordinator) error {
			if err := site.Mount(j, c, j.Folder == "."); err != nil {
				return err
			}
			fmt.Fprintf(a.Stderr, "job %s: join with: starling join %s --data FILE\n", j.Name, site.Token(j.Name))
			return nil
		},
		Unmount: func(name string) { site.Unmount(name) },
	}
	var host *jobs.Host
	if err := f.whenMine(ctx, a, nc, log, func() (err error) {
		host, err = jobs.Open(cfg)
		return err
	}); err != nil {
		return err
	}
	if site, err = server.NewSite(server.SiteConfig{Host: host, Pages: pages(a.Stderr), Trusted: trusted, Version: a.Version, Log: log, Gateways: f.throughGateways(), SignIn: issuer}); err != nil {
		return errors.Join(err, host.Close())
	}
	err = f.serveJobs(ctx, a, host, site, nc, issuer)
	return errors.Join(err, host.Close())
}

// serveJobs puts the site on the network and runs its jobs.
func (f serveFlags) serveJobs(ctx context.Context, a *command.App, host *jobs.Host, site *server.Site, nc *nats.Conn, issuer *signin.Issuer) error {
	if f.epsilon != 0 || f.delta != 0 {
		if err := host.Budget(f.epsilon, f.delta); err != nil {
			return fmt.Errorf("--fleet-epsilon %v, --fleet-delta %v: %w", f.epsilon, f.delta, err)
		}
	}
	endpoint, url, err := f.listenDevices(nc, site.Log(), host.Owns)
	if err != nil {
		return err
	}
	if err := site.Reach(url, endpoint.Pin); err != nil {
		err = errors.Join(err, endpoint.Listener.Close())
		if errors.Is(err, wire.ErrToken) {
			return usage.Wrap(err)
		}
		return err
	}
	operator, err := f.listenAdmin()
	if err != nil {
		return errors.Join(err, endpoint.Listener.Close())
	}
	dashboard, end, err := f.reachAdmin(ctx, a, operator, site.AdminAt, issuer)
	if err != nil {
		return errors.Join(err, endpoint.Listener.Close(), operator.Listener.Close())
	}
	defer end()
	fmt.Fprintf(a.Stderr, "listening on %s for the jobs of %s\njobs, for operators alone: starling job list --server %s; in a browser: %s\n",
		endpoint.Listener.Addr(), f.dir, dashboard, dashboardAddress(dashboard, site.AdminToken()))
	token, err := site.FleetToken()
	if err != nil {
		return errors.Join(err, endpoint.Listener.Close(), operator.Listener.Close())
	}
	fmt.Fprintf(a.Stderr, "all jobs, those to come too, as a device's owner allows: starling join --fleet %s --data FILE --epsilon E\n", token)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 2)
	go func() { served <- site.Serve(serving, endpoint) }()
	go func() { served <- site.ServeAdmin(serving, operator) }()
	err = host.Run(ctx)
	stop()
	err = errors.Join(err, <-served, <-served)
	if ctx.Err() != nil && err == nil {
		err = errors.New("interrupted; start the same command again to go on with the next rounds")
	}
	return err
}
