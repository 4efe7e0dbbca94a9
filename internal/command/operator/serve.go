package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/evaluation"
	"github.com/starling-fl/starling/internal/outcome"
	"github.com/starling-fl/starling/internal/progress"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/program"
)

type serveFlags struct {
	job, dir, store, blobs, traces, listen, url, validation, test string
	sample, witness                                               string
	admin, adminURL                                               string
	signIn                                                        signIn
	tls, everyRank, qr                                            bool
	cert, key, acme, directory, authority                         string
	trusted, origins                                              []string
	log                                                           command.Log
	nats                                                          relay.Access
	natsListen                                                    string
	gateways                                                      []string
	startNATS                                                     natsaccess.Start
	linger                                                        time.Duration
	despiteDropout                                                bool
	mostJobs                                                      int
	epsilon, delta                                                float64         // of a fleet
	columns                                                       dataset.Columns // of the public files
}

func newServeCmd(a *command.App, n natsaccess.Start) *cobra.Command {
	f := serveFlags{startNATS: n}
	cmd := &cobra.Command{
		Use:   "serve --dir DIR [--job job.yaml]",
		Short: "Run a coordinator for a fleet that comes and goes: of one job, or of several",
		Long: `Run a coordinator: it enrols devices, runs rounds until the job's rounds are
committed or its privacy budget is spent, and writes a checkpoint after each.
State lives in --dir; started again with the same job it continues with the
next round, the ledger intact. The join token is printed on standard error.

Without --job it runs the jobs that were submitted to --dir (see starling job submit), over
one fleet, until it is stopped.`,
		Example: "  starling serve --job job.yaml --dir run1 --listen 0.0.0.0:8443 --tls --url https://fl.example.org:8443",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.dir == "":
				return usage.Errorf("--dir is required, and --job for one job alone: see docs/JOB.md for the job file")
			case f.epsilon < 0 || math.IsInf(f.epsilon, 1) || f.epsilon > 0 != (f.delta > 0) || f.delta >= 1:
				return usage.Errorf("--fleet-epsilon %v and --fleet-delta %v: want both, the first above 0 and the second within 0 and 1", f.epsilon, f.delta)
			case f.throughGateways() && cmd.Flags().Changed("listen") && f.listen != "":
				return usage.Errorf("--listen and --nats, or --nats-listen, are two ways to hear devices: give one")
			}
			if err := f.checkNATS(); err != nil {
				return err
			}
			switch {
			case f.job == "":
				return runJobs(cmd.Context(), a, f)
			}
			if err := f.keep(); err != nil {
				return err
			}
			switch several, err := store.IsShared(f.dir); {
			case err != nil:
				return err
			case several:
				return usage.Errorf("%s is of a server with several jobs: start it without --job, and give it this job by starling job submit", f.dir)
			case f.mostJobs != 0 || f.epsilon != 0 || f.delta != 0:
				return usage.Errorf("--most-jobs, --fleet-epsilon and --fleet-delta are for a server of several jobs, without --job")
			}
			return runServe(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.job, "job", "", "job file (YAML)")
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder for the ledger, journal and checkpoints")
	cmd.Flags().StringVar(&f.store, "store", "", "PostgreSQL database for the ledger and the journal in place of a file in --dir, as postgres://USER@HOST/DATABASE, with ?schema=NAME for each server; kept in --dir. Several may be started with one: the others stand by")
	cmd.Flags().StringVar(&f.blobs, "blobs", "", "S3-compatible bucket for base, adapter.start and releases, as s3://BUCKET/PREFIX?endpoint=https://HOST, so that owners with one --store need no folder in common; credentials from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "address to listen on")
	cmd.Flags().StringVar(&f.url, "url", "", "how devices reach this address, if not by the one listened on; with a path where a proxy serves it below one")
	cmd.Flags().StringVar(&f.admin, "admin", freeAdmin, "address of the dashboard and of /metrics, which ask for the token that is printed; off loopback with TLS. Port 0 is a free one, kept in --dir for the next start")
	cmd.Flags().StringVar(&f.adminURL, "admin-url", "", "how browsers reach --admin, if not by the address listened on; with a path where a proxy serves it below one")
	f.signIn.flags(cmd.Flags())
	cmd.Flags().BoolVar(&f.tls, "tls", false, "serve TLS with a certificate kept in --dir, pinned by the join token")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "serve TLS with this certificate chain (PEM), read again when it is renewed; devices ask their system's authorities, so give --url")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "key of --tls-cert (PEM)")
	cmd.Flags().StringVar(&f.acme, "acme", "", "serve TLS with a certificate for this host name from Let's Encrypt, renewed by itself; it must reach --listen at port 443. You accept the authority's terms by it")
	cmd.Flags().StringVar(&f.directory, "acme-directory", "", "URL of another authority's ACME directory")
	cmd.Flags().StringVar(&f.authority, "acme-ca", "", "PEM file of those who vouch for that directory's own certificate, in place of the system's authorities")
	cmd.Flags().StringSliceVar(&f.trusted, "trust-proxy", nil, "addresses (CIDR) of proxies whose X-Forwarded-For is taken, so that limits of an address are the devices' own")
	cmd.Flags().StringSliceVar(&f.origins, "allow-origin", nil, "other site whose pages may take part, as https://app.example.org; repeat it for more. Whoever controls that site can make devices of its visitors")
	cmd.Flags().StringVar(&f.validation, "validation", "", "public labelled file that scores every round and chooses the rank")
	cmd.Flags().StringVar(&f.test, "test", "", "public labelled file for the result table")
	command.ColumnFlags(cmd.Flags(), &f.columns)
	cmd.Flags().StringVar(&f.sample, "sample", "", "public labelled file that the join page offers to visitors to try; neither --validation nor --test")
	cmd.Flags().BoolVar(&f.everyRank, "test-every-rank", false, "score --test at every rank, not only at the one that validation chose")
	cmd.Flags().StringVar(&f.witness, "witness", "", "URL of a witness (C2SP tlog-witness) that signs the log of enrolled keys before each round, for devices that ask for it")
	cmd.Flags().BoolVar(&f.despiteDropout, "despite-dropout", false, "go on where the job paused since more devices drop out than cohort.dropout declares; no epsilon covers that")
	cmd.Flags().IntVar(&f.mostJobs, "most-jobs", 0, "without --job: how many jobs are open at once, others wait (default 4)")
	cmd.Flags().Float64Var(&f.epsilon, "fleet-epsilon", 0, "without --job: what the jobs of a pool may spend together, from now on; kept in --dir (default: what was given before, or each job's own budget alone)")
	cmd.Flags().Float64Var(&f.delta, "fleet-delta", 0, "the delta of --fleet-epsilon")
	cmd.Flags().DurationVar(&f.linger, "linger", 3*time.Second, "how long devices may still ask after the job's end")
	cmd.Flags().BoolVar(&f.qr, "qr", false, "draw the join page's address as a QR code even where a terminal would not show it, or only this machine reaches it")
	cmd.Flags().StringVar(&f.nats.URL, "nats", "", "NATS servers by which gateways (starling gateway) pass devices' connections on, in place of --listen")
	f.nats.Flags(cmd.Flags())
	cmd.Flags().StringVar(&f.natsListen, "nats-listen", "", "in place of --nats: address at which this process is a NATS server for its --gateway, with TLS and a password for each")
	cmd.Flags().StringSliceVar(&f.gateways, "gateway", nil, "name of a gateway that --nats-listen lets in, once for each; its settings are written to gateways/NAME.yaml in --dir")
	cmd.Flags().StringVar(&f.traces, "trace-otlp", "", "OpenTelemetry collector that is told of each round, its turns and shards, by OTLP over HTTP, as http://127.0.0.1:4318: counts and times, no devices")
	f.log.Flags(cmd.Flags())
	command.Settings(cmd)
	return cmd
}

// loadSample reads the file for visitors as it is, once it is known that they could
// join with it.
func loadSample(f serveFlags, labels []string) ([]byte, string, error) {
	if f.sample == "" {
		return nil, "", nil
	}
	if _, err := evaluation.ReadPublic(f.sample, f.columns, labels); err != nil {
		return nil, "", fmt.Errorf("--sample: %w", err)
	}
	if info, err := os.Stat(f.sample); err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("--sample: %s is a folder, and visitors get one file: give a table of pixels (.csv)", f.sample)
	}
	b, err := os.ReadFile(f.sample)
	return b, filepath.Base(f.sample), err
}

func runServe(ctx context.Context, a *command.App, f serveFlags) error {
	start := time.Now()
	for _, origin := range f.origins { // before anything is made in --dir
		if _, err := server.ParseOrigin(origin); err != nil {
			return usage.Errorf("--allow-origin: %v", err)
		}
	}
	job, err := job.Load(f.job)
	if err != nil {
		return err
	}
	cfg := coordinator.Config{Job: job, Dir: f.dir, Patient: true, DespiteDropout: f.despiteDropout, Compile: program.Step, Hosts: program.Hosts}
	if cfg.Log, err = f.log.Logger(a.Stderr); err != nil {
		return err
	}
	issuer, err := f.signIn.open(cfg.Log)
	if err != nil {
		return err
	}
	if cfg.Traces, err = f.exporter(a, cfg.Log); err != nil {
		return err
	}
	defer cfg.Traces.Close()
	kept, err := f.shelf(cfg.Log)
	if err != nil {
		return err
	}
	if err := kept.Load(ctx, &cfg, f.dir); err != nil {
		return err
	}
	b := cfg.Base
	command.SayTask(a.Stderr, job.Task != "", b)
	job = job.ForBase(b.Config)
	layout, err := outcome.Layout(job, b)
	if err != nil {
		return err
	}
	splits, err := evaluation.ReadSplits(cmp.Or(f.validation, job.ValidationFile), f.test, f.columns, job, b)
	if err != nil {
		return err
	}
	view := progress.NewView(a.Stderr, job, splits.Note())
	view.Learning = splits.Learning(job.Rounds)
	if f.witness != "" {
		cfg.Cosign = (&server.Witness{URL: f.witness, HTTP: http.DefaultClient}).Cosign
	}
	if f.log.Drawn() {
		cfg.Progress = view.Show
	}
	splits.Choose(&cfg)
	nc, end, err := f.reach(cfg.Log)
	if err != nil {
		return err
	}
	defer end()
	if nc != nil {
		cfg.SumMasks = relay.Borrow(nc).Sum
	}
	var c *coordinator.Coordinator
	defer kept.End(ctx)
	if err := f.whenMine(ctx, a, nc, cfg.Log, func() (err error) {
		kept.Release(ctx, &cfg, "")
		c, err = coordinator.New(cfg)
		return err
	}); err != nil {
		return err
	}
	served := server.Config{Pages: pages(a.Stderr), Version: a.Version, Origins: f.origins, Gateways: f.throughGateways(), SignIn: issuer}
	if served.Trusted, err = f.proxies(); err != nil {
		return errors.Join(err, c.Close())
	}
	if served.Sample, served.SampleName, err = loadSample(f, job.Labels); err != nil {
		return errors.Join(err, c.Close())
	}
	s, err := server.New(c, served)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	runErr := serveAndRun(ctx, a, c, s, nc, issuer, f)
	result := c.Result()
	err = c.Close()
	spent := errors.Is(runErr, coordinator.ErrBudget)
	if spent {
		runErr = fmt.Errorf("the budget is spent after %d of %d rounds: %w. A new job in another folder that begins with its checkpoint (adapter.start) has a budget of its own",
			result.Rounds, job.Rounds, runErr)
	}
	if err != nil || runErr != nil && !(spent && result.Rounds > 0) { // what was released is a result
		return errors.Join(runErr, err)
	}
	r := outcome.Report{Task: job.Name, Devices: job.Cohort.Population}
	r.Settle(job, result)
	r.Parts = &result.Parts
	r.Seconds = time.Since(start).Seconds()
	report, err := splits.Report(ctx, r, layout, result, f.everyRank)
	if err == nil {
		err = a.Emit(report, report.Print)
	}
	return errors.Join(runErr, err)
}

// listenDevices opens the devices' listener, and says how they reach it. owns says whether this
// process is sure to be the one that devices are to come to.
func (f serveFlags) listenDevices(nc *nats.Conn, log *slog.Logger, owns func() bool) (*server.Endpoint, string, error) {
	cert, err := f.certificate(log)
	if err != nil {
		return nil, "", err
	}
	if f.throughGateways() {
		endpoint, err := f.listenGateways(nc, cert, owns, log)
		return endpoint, strings.TrimRight(f.url, "/"), err
	}
	endpoint, err := server.Listen(f.listen, cert)
	if err != nil {
		return nil, "", err
	}
	return endpoint, cmp.Or(strings.TrimRight(f.url, "/"), endpoint.URL), nil
}

// serveAndRun serves devices until the job is done.
func serveAndRun(ctx context.Context, a *command.App, c *coordinator.Coordinator, s *server.Server, nc *nats.Conn, issuer *signin.Issuer, f serveFlags) error {
	endpoint, url, err := f.listenDevices(nc, c.Log(), c.Owns)
	if err != nil {
		return err
	}
	if f.url != "" || !loopback(endpoint) {
		if err := c.RequireSecret(); err != nil {
			return errors.Join(err, endpoint.Listener.Close())
		}
	}
	token := s.Token(url, endpoint.Pin)
	if err := c.Reached(token); err != nil {
		err = errors.Join(err, endpoint.Listener.Close())
		if errors.Is(err, wire.ErrToken) {
			return usage.Wrap(err)
		}
		return err
	}
	fmt.Fprintf(a.Stderr, "listening on %s\njoin with: starling join %s --data FILE\nor open %s/#%s in a browser\n",
		endpoint.Listener.Addr(), token, url, token)
	link, local := s.JoinLink()
	for _, origin := range f.origins {
		fmt.Fprintf(a.Stderr, "pages of %s may take part, too\n", origin)
	}
	printQR(a.Stderr, link, local, f.qr)
	operator, err := f.listenAdmin()
	if err != nil {
		return errors.Join(err, endpoint.Listener.Close())
	}
	dashboard, end, err := f.reachAdmin(ctx, a, operator, s.AdminAt, issuer)
	if err != nil {
		return errors.Join(err, endpoint.Listener.Close(), operator.Listener.Close())
	}
	defer end()
	fmt.Fprintf(a.Stderr, "dashboard, for the operator alone: %s\n", dashboardAddress(dashboard, s.AdminToken()))
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 2)
	go func() { served <- s.Serve(serving, endpoint) }()
	go func() { served <- s.ServeAdmin(serving, operator) }()
	runErr := c.Run(ctx)
	farewell(ctx, c, f.linger)
	stop()
	if ctx.Err() != nil && runErr != nil {
		runErr = errors.New("interrupted; start the same command again to go on with the next round")
	}
	return errors.Join(runErr, <-served, <-served)
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
