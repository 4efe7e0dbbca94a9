//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/postgrestest"
	"github.com/starling-fl/starling/lab/gateways"
)

// names are the gateways of deploy/nats/nats.conf.
var names = []string{"one", "two", "three"}

const jobFile = `
name: soak
labels: [a, b]
rounds: 10000
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: %d, floor: 8, max_abandoned: 1000}
shard: {size: 32, floor: 8, corrupt: 0, breach_bits: 0}
privacy: {noise_multiplier: 0.001, epsilon: 1.0e+15}
`

// deployment is all that runs but the devices.
type deployment struct {
	o        options
	database *postgrestest.Server
	broker   *gateways.Broker
	at       []string // of gateways
	token    string
	owners   [2]*part
	passing  []*part
	kills    int
}

// part is a process, and what it says.
type part struct {
	args []string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}

	mu    sync.Mutex
	token string // guarded by mu: the job's, where it was said
	owns  bool   // guarded by mu
}

var joins = regexp.MustCompile(`^job soak: join with: starling join (\S+)`)

// run starts a process whose log goes to a file.
func run(o options, log string, args ...string) (*part, error) {
	p := &part{args: args, cmd: exec.Command(o.binary, args...), done: make(chan struct{})}
	var err error
	if p.log, err = os.OpenFile(filepath.Join(o.dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	said, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(io.TeeReader(said, p.log)); lines.Scan(); {
			p.mu.Lock()
			if m := joins.FindStringSubmatch(lines.Text()); m != nil {
				p.token = m[1]
			}
			p.owns = p.owns || strings.HasPrefix(lines.Text(), "listening")
			p.mu.Unlock()
		}
	}()
	return p, nil
}

func (p *part) kill() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
	_ = p.cmd.Wait() // it was killed
	return p.log.Close()
}

func (p *part) is() (token string, owns bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token, p.owns
}

func (d *deployment) folder(i int) string { return filepath.Join(d.o.dir, fmt.Sprintf("owner%d", i)) }

// deploy starts all parts, and the job.
func deploy(o options) (*deployment, error) {
	d := &deployment{o: o, passing: make([]*part, len(names))}
	var err error
	if d.database, err = postgrestest.Start(); err != nil {
		return nil, err
	}
	nats := filepath.Join(o.dir, "nats")
	if err := os.Mkdir(nats, 0o700); err != nil {
		return d, err
	}
	if d.broker, err = gateways.Start(nats, "../deploy/nats/nats.conf"); err != nil {
		return d, err
	}
	for range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return d, err
		}
		d.at = append(d.at, l.Addr().String())
		if err := l.Close(); err != nil {
			return d, err
		}
	}
	file := filepath.Join(o.dir, "job.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, jobFile, o.devices), 0o600); err != nil {
		return d, err
	}
	if err := d.own(0); err != nil {
		return d, err
	}
	if err := until("the first owner", func() bool { _, owns := d.owners[0].is(); return owns }); err != nil {
		return d, err
	}
	if out, err := exec.Command(o.binary, "job", "submit", "--dir", d.folder(0), file).CombinedOutput(); err != nil {
		return d, fmt.Errorf("job submit: %w: %s", err, out)
	}
	if err := until("the job", func() bool { d.token, _ = d.owners[0].is(); return d.token != "" }); err != nil {
		return d, err
	}
	pem, err := os.ReadFile(filepath.Join(d.folder(0), "tls.pem"))
	if err = errors.Join(err, os.Mkdir(d.folder(1), 0o700), os.WriteFile(filepath.Join(d.folder(1), "tls.pem"), pem, 0o600)); err != nil {
		return d, err
	}
	if err := d.own(1); err != nil {
		return d, err
	}
	for i := range names {
		if err := d.pass(i); err != nil {
			return d, err
		}
	}
	return d, nil
}

func until(what string, is func() bool) error {
	for range 600 {
		if is() {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s was not there within a minute", what)
}

func (d *deployment) own(i int) (err error) {
	to := d.broker.Access("owner")
	d.owners[i], err = run(d.o, fmt.Sprintf("owner%d.log", i), "serve", "--dir", d.folder(i), "--store", d.database.URL(), "--nats", to.URL,
		"--nats-ca", to.CA, "--tls", "--url", "https://"+d.at[0], "--log", "text")
	return err
}

func (d *deployment) pass(i int) (err error) {
	to := d.broker.Access(names[i])
	d.passing[i], err = run(d.o, "gateway-"+names[i]+".log", "gateway", "--nats", to.URL, "--nats-ca", to.CA, "--name", names[i],
		"--listen", d.at[i], "--log", "text")
	return err
}

// strike kills or restarts the next part, and says which.
func (d *deployment) strike() (what string, err error) {
	defer func() { d.kills++ }()
	switch n := d.kills % 6; n {
	case 0, 2:
		i := 0
		if _, owns := d.owners[1].is(); owns {
			i = 1
		}
		return fmt.Sprintf("owner %d killed", i), errors.Join(d.owners[i].kill(), d.own(i))
	case 1, 4:
		i := (d.kills/6 + n/4) % len(names)
		return "gateway " + names[i] + " killed", errors.Join(d.passing[i].kill(), d.pass(i))
	case 3:
		return "database restarted", d.database.Restart()
	}
	return "NATS restarted", d.broker.Restart()
}

func (d *deployment) end() error {
	err := errors.Join(d.owners[0].kill(), d.owners[1].kill())
	for _, p := range d.passing {
		err = errors.Join(err, p.kill())
	}
	if d.broker != nil {
		d.broker.Stop()
	}
	return errors.Join(err, d.database.Stop())
}

// ledger is the job's, verified.
func (d *deployment) ledger() (store.Ledger, error) {
	l, err := store.ReadLedger(filepath.Join(d.folder(0), "jobs", "soak"))
	if errors.Is(err, store.ErrNoStore) {
		return l, nil
	}
	return l, err
}

// settled pauses the job, and holds that every round that was begun has ended, none was charged
// twice, and both ledgers agree.
func (d *deployment) settled() error {
	if out, err := exec.Command(d.o.binary, "job", "pause", "--dir", d.folder(0), "soak").CombinedOutput(); err != nil {
		return fmt.Errorf("job pause: %w: %s", err, out)
	}
	var charged, released int
	var open []uint64
	var faults error
	if err := until("the last round's end", func() bool {
		out, err := exec.Command(d.o.binary, "job", "ledger", "--json", "--dir", d.folder(1)).Output()
		if err != nil {
			return false
		}
		l, err := d.ledger()
		if err != nil {
			return false
		}
		charged = len(l.Entries)
		released, open, faults = gateways.Agree(l, out)
		return faults == nil && len(open) == 0
	}); err != nil {
		return errors.Join(fmt.Errorf("%w: rounds %v have not ended", err, open), faults)
	}
	fmt.Printf("ledgers: %d rounds charged once, %d of them released; both verify and agree; every round that was begun has ended\n", charged, released)
	return nil
}
