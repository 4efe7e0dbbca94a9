// Package service runs a coordinator as a service: of one job, or of those that were submitted to its folder. It
// opens the state, the listeners of devices and of operators with their TLS, the gateways and the sign-in that a
// [Config] asks for, and closes them with the job. What cannot be asked for is a usage error that names a flag of
// 'starling serve'.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/shelf"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/wasm/program"
)

// Config holds the settings of a service, the flags of 'starling serve'.
type Config struct {
	Job   string // file of one job; "": the jobs that were submitted to Dir
	Dir   string // ledger, journal, checkpoints
	Store string // PostgreSQL database in place of a file in Dir; "": what Dir was made with
	Blobs string // bucket for what a job is made of; "" for none

	Listen          string // host:port for devices, where no gateways pass them on
	ListenGiven     bool   // the address was asked for: then there are no gateways
	URL             string // how devices reach it; "": as it listens
	Admin, AdminURL string // the same of the operator's address
	TLS             TLS
	SignIn          SignIn
	Trusted         []string // CIDR of proxies
	Origins         []string // sites whose pages may take part

	NATS       relay.Access // of the gateways' NATS servers
	NATSListen string       // in its place: where this process is one
	Gateways   []string     // names that NATSListen lets in
	StartNATS  natsaccess.Start

	// Of one job.
	Validation, Test, Sample string          // public files
	Columns                  dataset.Columns // of them
	EveryRank                bool            // Test is scored at each rank
	Witness                  string          // URL
	DespiteDropout, QR       bool
	Linger                   time.Duration // after the job's end

	// Of several.
	MostJobs       int
	Epsilon, Delta float64 // what a pool's jobs may spend together; 0: as before

	Version string       // of this program
	Log     *slog.Logger // nil for none
	Drawn   bool         // rounds are drawn on Stderr, between the lines of the log
	Stderr  io.Writer    // for people
}

// Check checks the fields against each other.
func (c *Config) Check() error {
	switch {
	case c.Dir == "":
		return usage.Errorf("--dir is required, and --job for one job alone: see docs/JOB.md for the job file")
	case c.Epsilon < 0 || math.IsInf(c.Epsilon, 1) || c.Epsilon > 0 != (c.Delta > 0) || c.Delta >= 1:
		return usage.Errorf("--fleet-epsilon %v and --fleet-delta %v: want both, the first above 0 and the second within 0 and 1", c.Epsilon, c.Delta)
	case c.throughGateways() && c.ListenGiven && c.Listen != "":
		return usage.Errorf("--listen and --nats, or --nats-listen, are two ways to hear devices: give one")
	}
	if err := c.checkNATS(); err != nil {
		return err
	}
	if c.Job != "" {
		for _, origin := range c.Origins {
			if _, err := server.ParseOrigin(origin); err != nil {
				return usage.Errorf("--allow-origin: %v", err)
			}
		}
		if c.MostJobs != 0 || c.Epsilon != 0 || c.Delta != 0 {
			return usage.Errorf("--most-jobs, --fleet-epsilon and --fleet-delta are for a server of several jobs, without --job")
		}
		return nil
	}
	for flag, given := range map[string]bool{"--validation": c.Validation != "", "--test": c.Test != "", "--test-every-rank": c.EveryRank,
		"--sample": c.Sample != "", "--witness": c.Witness != "", "--allow-origin": len(c.Origins) > 0, "--despite-dropout": c.DespiteDropout, "--qr": c.QR} {
		if given {
			return usage.Errorf("%s is one job's: it goes with --job%s", flag, map[string]string{"--validation": ", or as validation_file into a job's file"}[flag])
		}
	}
	return nil
}

// Run serves until the one job is done, whose report it returns, or else until ctx is.
func (c *Config) Run(ctx context.Context) (evaluation.Printer, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := named.Dir(c.Dir); err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	if c.Store != "" {
		if err := store.UseDatabase(c.Dir, c.Store); err != nil {
			return nil, fmt.Errorf("--store: %w", err)
		}
	}
	switch shared, err := store.IsShared(c.Dir); {
	case err != nil:
		return nil, err
	case shared && c.Job != "":
		return nil, usage.Errorf("%s is of a server with several jobs: start it without --job, and give it this job by starling job submit", c.Dir)
	case !shared && c.Job == "" && c.Store == "":
		return nil, usage.Errorf("no job was submitted to %s: give --job for one job alone, or begin a server of several: starling job submit --dir %s job.yaml", c.Dir, c.Dir)
	}
	return c.again(ctx, func(begun *bool) (evaluation.Printer, error) {
		if c.Job != "" {
			return c.runOne(ctx, begun)
		}
		return nil, c.runSeveral(ctx, begun)
	})
}

// parts are what one job and several are served with.
type parts struct {
	*Config
	trusted []netip.Prefix
	issuer  *signin.Issuer // nil: operators have tokens alone
	kept    *shelf.Shelf
	nc      *nats.Conn // of the gateways' servers elsewhere; nil for none
}

// open opens them. The caller calls close.
func (c *Config) open() (p *parts, err error) {
	p = &parts{Config: c}
	if p.trusted, err = c.proxies(); err != nil {
		return nil, err
	}
	if p.issuer, err = c.SignIn.open(c.Log); err != nil {
		return nil, err
	}
	if p.kept, err = c.shelf(); err != nil {
		return nil, err
	}
	if c.NATS.URL != "" {
		if p.nc, err = relay.Connect(c.NATS, "owner", orSilent(c.Log)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *parts) close() {
	if p.nc != nil {
		p.nc.Close()
	}
}

// coordinator is what every coordinator of this service has.
func (p *parts) coordinator() coordinator.Config {
	cfg := coordinator.Config{Log: p.Log, Patient: true, DespiteDropout: p.DespiteDropout, Compile: program.Step, Hosts: program.Hosts}
	if p.Witness != "" {
		cfg.Cosign = (&server.Witness{URL: p.Witness, HTTP: http.DefaultClient}).Cosign
	}
	return cfg
}

// whenMine opens the state of Dir once no other coordinator holds it, in a database. begun is set once the state
// was reached. One that cannot reach its gateways' NATS waits and does not offer to take over.
func (p *parts) whenMine(ctx context.Context, begun *bool, open func() error) error {
	fit := func() bool { return p.nc == nil || p.nc.IsConnected() }
	for {
		err := store.AwaitLease(ctx, p.Dir, fit, func() {
			*begun = true
			fmt.Fprintln(p.Stderr, "standing by: another coordinator holds the lease of this state")
		})
		if err == nil {
			err = open()
			*begun = *begun || err == nil
		}
		if !errors.Is(err, store.ErrLeased) { // else another one that stood by was faster
			return err
		}
	}
}

// orSilent is a log that takes lines, nil or not.
func orSilent(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
