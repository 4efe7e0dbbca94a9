//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/postgrestest"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/gateways"
	"github.com/starling-fl/starling/lab/loadtest"
)

// balancer passes connections on to whichever owner answers, as those before several machines do.
type balancer struct {
	owners []string

	mu     sync.Mutex
	out    string              // guarded by mu: the owner that a health check took out
	passed map[net.Conn]string // guarded by mu: connections to owners
}

// takeOut passes nothing more on to an owner, and ends what was.
func (b *balancer) takeOut(owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out = owner
	for conn, to := range b.passed {
		if to == owner {
			conn.Close()
		}
	}
}

// dial reaches an owner, nil where none answers.
func (b *balancer) dial() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, owner := range b.owners {
		if owner == b.out {
			continue
		}
		if conn, err := net.DialTimeout("tcp", owner, time.Second); err == nil {
			b.passed[conn] = owner
			return conn
		}
	}
	return nil
}

func (b *balancer) serve(l net.Listener, wg *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { b.pass(conn) })
	}
}

func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	to := b.dial()
	if to == nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, from) // either end may hang up
		to.Close()
	}()
	_, _ = io.Copy(from, to)
	to.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.passed, to)
}

// balance stands before two owners' addresses, at a URL of its own.
func balance(t *testing.T) (b *balancer, at string) {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b = &balancer{owners: []string{freePort(t), freePort(t)}, passed: map[net.Conn]string{}}
	var passing sync.WaitGroup
	go b.serve(front, &passing)
	t.Cleanup(func() { front.Close(); passing.Wait() })
	return b, "http://" + front.Addr().String()
}

// play has light devices take part in a job, until the test is over; ended waits until all are
// done.
func play(t *testing.T, cfg loadtest.Config, token string) (fleet *loadtest.Fleet, ended func()) {
	t.Helper()
	fleet, err := loadtest.New(cfg, token)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(watchdog.Context(t))
	var playing sync.WaitGroup
	playing.Go(func() { fleet.Run(ctx) })
	t.Cleanup(func() { stop(); playing.Wait() })
	return fleet, playing.Wait
}

// TestOwnersOfOneDatabase: two servers hold one PostgreSQL database, one of them at a time. The
// one that owns the job is killed in the middle of a round, the database is restarted, and then
// the owner is paused, and wakes up when another one has its place. The job ends, no round was
// charged twice, and both kinds of ledger verify and agree.
func TestOwnersOfOneDatabase(t *testing.T) {
	t.Parallel()
	const devices, rounds = 30, 7
	s := newService(t, devices, rounds)
	b, at := balance(t)
	owner := func(i int) *process {
		return start(t, s.binary, "serve", "--dir", s.folder(i), "--store", s.database.URL(), "--listen", b.owners[i],
			"--url", at, "--log", "text")
	}
	first := owner(0)
	token := s.submit(first)
	second := owner(1)
	second.await(t, "standing by")

	fleet, ended := play(t, loadtest.Config{Devices: devices}, token)
	s.more("the first round")

	died := time.Now()
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.await(t, "listening on")
	t.Logf("a killed owner was replaced after %v", time.Since(died))
	first.end()
	third := owner(0) // as whatever started it would
	third.await(t, "standing by")
	s.more("a round of the second owner")

	if err := s.database.Restart(); err != nil {
		t.Fatal(err)
	}
	s.more("a round after the database's restart")

	if err := second.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.takeOut(b.owners[1])
	third.await(t, "listening on")
	s.more("a round of the third owner")
	if err := second.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	second.await(t, "another coordinator has taken over.*trying again")
	second.await(t, "standing by") // for the third one's place
	third.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", ended)

	settled(t, s.binary, s.folder(1), s.charged(), rounds, 2)
	if r := fleet.Report(); r.Finished != devices {
		t.Errorf("%+v", r)
	}
	if u, err := url.Parse(s.database.URL()); err != nil || strings.Contains(second.said(), u.RawQuery) {
		t.Errorf("the database's address is in the log, %v", err)
	}
}

// settled holds that as many rounds were charged, none of them twice, that none is open, and that the job's ledger
// and the fleet's agree. It returns how many were released: all but those that were running when one of the killed
// owners died, which are charged, too.
func settled(t *testing.T, binary, folder string, l store.Ledger, rounds, killed int) (released int) {
	t.Helper()
	out, err := exec.CommandContext(watchdog.Context(t), binary, "job", "ledger", "--json", "--dir", folder).Output()
	if err != nil {
		t.Fatalf("the fleet's ledger: %v\n%s", err, out)
	}
	released, open, err := gateways.Agree(l, out)
	if err != nil {
		t.Error(err)
	}
	if len(l.Entries) != rounds || released < rounds-killed {
		t.Errorf("%d rounds were released and %d charged, want %d but for %d", released, len(l.Entries), rounds, killed)
	}
	if len(open) > 0 {
		t.Errorf("rounds %v were begun and never ended", open)
	}
	return released
}

// service is a job, and the PostgreSQL database that its owners hold; nil for one owner and its folder.
type service struct {
	t           *testing.T
	database    *postgrestest.Server
	binary, dir string
	file        string // the job's
}

// newService starts the database, and writes the job.
func newService(t *testing.T, devices, rounds int) *service {
	t.Helper()
	database, err := postgrestest.Start()
	if errors.Is(err, postgrestest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := newJob(t, devices, rounds)
	s.database = database
	return s
}

// newJob writes a job whose owner holds its folder alone.
func newJob(t *testing.T, devices, rounds int) *service {
	t.Helper()
	s := &service{t: t, binary: build(t), dir: t.TempDir()}
	s.file = filepath.Join(s.dir, "job.yaml")
	if err := os.WriteFile(s.file, fmt.Appendf(nil, `
name: load
labels: [a, b]
rounds: %d
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: %d, floor: 3}
shard: {size: 16, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`, rounds, devices), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// folder is the i-th owner's.
func (s *service) folder(i int) string { return filepath.Join(s.dir, fmt.Sprintf("owner%d", i)) }

// submit gives the job to the first owner, and returns its token.
func (s *service) submit(first *process) (token string) {
	s.t.Helper()
	first.await(s.t, "listening on")
	s.put()
	return s.token(first)
}

// put gives the job to the first owner's folder.
func (s *service) put() {
	s.t.Helper()
	if out, err := exec.CommandContext(watchdog.Context(s.t), s.binary, "job", "submit", "--dir", s.folder(0), s.file).CombinedOutput(); err != nil {
		s.t.Fatalf("job submit: %v\n%s", err, out)
	}
}

// token is what an owner says that devices join the job by.
func (s *service) token(owner *process) string {
	s.t.Helper()
	return owner.await(s.t, `^job load: join with: starling join (\S+)`)[1]
}

// charged is the job's ledger.
func (s *service) charged() store.Ledger {
	l, err := store.ReadLedger(filepath.Join(s.folder(0), "jobs", "load"))
	if err != nil && !errors.Is(err, store.ErrNoStore) {
		s.t.Fatal(err)
	}
	return l
}

// more waits until rounds have ended since.
func (s *service) more(what string) {
	s.t.Helper()
	was, began := len(s.charged().Entries), time.Now()
	watchdog.Wait(s.t, what, func() {
		for len(s.charged().Entries) == was && watchdog.Context(s.t).Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
	})
	s.t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
}
