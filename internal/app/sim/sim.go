package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Config is a coordinator and its fleet.
type Config struct {
	Coordinator coordinator.Config
	Pages       http.Handler   // for the operator's browser; may be nil
	Clients     []*dataset.Set // one device each
	Faults      map[int]Fault  // by client
	// Seed makes the devices reproducible: identities, rounding, masks, order of
	// examples. Nil takes crypto/rand. It goes with Coordinator.Seed.
	Seed             []byte
	AcceptNotPrivate bool // devices join a job that says so of itself

	Trainer edge.Trainer // shared by the fleet; nil: two compiled programs at a time. Closed by Run.
	Log     *slog.Logger // of the devices; nil: discard
	// Device hears of each device's events. It must be safe for concurrent use.
	Device func(client int, e edge.Event)
	// Listening hears the operator's address and admin token before the first round; nil opens none.
	Listening func(url, adminToken string)
	// Policy is the devices' policy; nil is edge.TrustingPolicy: coordinator and data are in one process.
	Policy *edge.Policy
}

// Result is the result of the job.
type Result struct {
	monitor.Result
	Traffic Traffic
	Devices []DeviceResult
}

// DeviceResult is one device's report.
type DeviceResult struct {
	Committed, Abandoned, Dropped, Refused int   // rounds
	Err                                    error // what edge.Run returned; nil: it saw the job's end
	Vanished                               bool  // by its script
}

// farewell is how long devices may take to notice that the job is over.
const farewell = 10 * time.Second

// Run runs the job to its end. It returns the coordinator's error, if any;
// devices' errors are in the result. All that it started has ended.
func Run(ctx context.Context, cfg Config) (_ Result, err error) {
	if len(cfg.Clients) == 0 {
		return Result{}, errors.New("sim: no clients")
	}
	if cfg.Policy == nil {
		trusting := edge.TrustingPolicy()
		cfg.Policy = &trusting
	}
	if cfg.Trainer == nil {
		cfg.Trainer = edge.NewProgramTrainer(2)
	}
	defer func() { err = errors.Join(err, cfg.Trainer.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	co, err := coordinator.New(cfg.Coordinator)
	if err != nil {
		return Result{}, err
	}
	srv, err := server.New(co, server.Config{Pages: cfg.Pages})
	if err != nil {
		return Result{}, errors.Join(err, co.Close())
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Result{}, errors.Join(err, co.Close())
	}
	sockets := &http.Server{Handler: srv.Handler(), ReadHeaderTimeout: 10 * time.Second}
	serving := make(chan error, 1)
	go func() { serving <- sockets.Serve(ln) }()

	f := &fleet{cfg: cfg, token: wire.Token{
		URL: "http://" + ln.Addr().String(), Secret: []byte(cfg.Coordinator.Job.Enrolment.Secret),
	}}
	administering := make(chan error, 1)
	if err := administer(ctx, cfg, srv, administering); err != nil {
		return Result{}, errors.Join(err, sockets.Close(), co.Close())
	}
	if err := f.start(ctx); err != nil {
		cancel()
		f.wg.Wait()
		return Result{}, errors.Join(err, <-administering, sockets.Close(), co.Close())
	}
	runErr := co.Run(ctx)
	f.end(cancel)
	err = errors.Join(runErr, <-administering, co.Close(), sockets.Close())
	if e := <-serving; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return Result{Result: co.Result(), Traffic: total(f.meters), Devices: f.results}, err
}

// administer opens the operator's listener where somebody wants to hear of it; its
// end comes through done.
func administer(ctx context.Context, cfg Config, srv *server.Server, done chan<- error) error {
	if cfg.Listening == nil {
		done <- nil
		return nil
	}
	e, err := server.Listen("127.0.0.1:0", nil)
	if err != nil {
		return err
	}
	go func() { done <- srv.ServeAdmin(ctx, e) }()
	cfg.Listening(e.URL, srv.AdminToken())
	return nil
}

// fleet is the devices of a run.
type fleet struct {
	cfg     Config
	token   wire.Token
	wg      sync.WaitGroup
	meters  []*meter
	results []DeviceResult // each written by its device's goroutine until wg is done
	clock   clock
}

// start starts every device.
func (f *fleet) start(ctx context.Context) error {
	f.results = make([]DeviceResult, len(f.cfg.Clients))
	for i := range f.cfg.Clients {
		c, err := f.device(i)
		if err != nil {
			return err
		}
		ctx, vanish := context.WithCancel(ctx)
		m := &meter{rounds: make(map[uint64]struct{}), kinds: make(map[string]blobKind)}
		f.meters = append(f.meters, m)
		s := &script{vanish: vanish, fleet: &f.clock}
		if fault, ok := f.cfg.Faults[i]; ok {
			s.fault = &fault
		}
		if err := f.connect(&c, m, s); err != nil {
			return err
		}
		f.wg.Go(func() {
			defer vanish()
			defer c.HTTP.CloseIdleConnections()
			r := &f.results[i]
			c.Progress = func(e edge.Event) {
				r.count(e)
				if f.cfg.Device != nil {
					f.cfg.Device(i, e)
				}
			}
			r.Err = edge.Run(ctx, c)
			r.Vanished = s.fault != nil && s.fault.Kind == Vanish && s.done
		})
	}
	return nil
}

// device is client i's configuration.
func (f *fleet) device(i int) (edge.Config, error) {
	c := edge.Config{
		Token: f.token.String(), Data: edge.Examples(f.cfg.Clients[i]), Trainer: f.cfg.Trainer, Agent: fmt.Sprintf("sim/%d", i),
		Policy: f.cfg.Policy, BackoffMin: 20 * time.Millisecond, BackoffMax: 500 * time.Millisecond,
	}
	if f.cfg.Log != nil {
		c.Log = f.cfg.Log.With("device", i)
	}
	if len(f.cfg.Seed) != 0 {
		c.Seed, c.Identity = edge.Reproducible(f.cfg.Seed, i)
		c.AcceptNotPrivate = true
		return c, nil
	}
	var err error
	c.AcceptNotPrivate = f.cfg.AcceptNotPrivate
	c.Identity, err = edge.NewIdentity()
	return c, err
}

// connect puts the meter and the script into a device's connections.
func (f *fleet) connect(c *edge.Config, m *meter, s *script) error {
	version := new(atomic.Int64)
	client, err := m.blobClient(c.Token)
	if err != nil {
		return err
	}
	c.HTTP = client
	c.Dial = func(ctx context.Context, token string) (edge.Conn, error) {
		if err := s.mayDial(); err != nil {
			return nil, err
		}
		under, err := edge.DialSocket(ctx, token, m.socket.Dialer())
		if err != nil {
			return nil, err
		}
		return &conn{Conn: under, script: s, meter: m, version: version}, nil
	}
	return nil
}

// end waits for the devices: they have been told that the job is over; those
// that have not heard it are stopped.
func (f *fleet) end(cancel context.CancelFunc) {
	done := make(chan struct{})
	go func() { f.wg.Wait(); close(done) }()
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	cancel()
	<-done
}

// count follows a device's events. They come one at a time.
func (r *DeviceResult) count(e edge.Event) {
	switch e.State {
	case edge.Committed:
		r.Committed++
	case edge.Abandoned:
		r.Abandoned++
	case edge.Dropped:
		r.Dropped++
	case edge.Refused:
		r.Refused++
	}
}
