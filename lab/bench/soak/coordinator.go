//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

var labels = []string{"one", "two"}

// secret is what devices enrol with.
const secret = "a secret of the soak"

// coordinate is the coordinator's process: a line of JSON for each change.
func coordinate(ctx context.Context, o options, addr string) error {
	base, err := tinyBase()
	if err != nil {
		return err
	}
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "soak", labels, 10_000
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 4, Alpha: 4, Sequence: 8}
	j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.MaxAbandoned = o.devices, o.rate, 1000
	j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = 1e-3, 1e15 // it protects nobody: there is no data
	j.Deadlines.Collect = time.Minute
	j.Enrolment.Secret = secret
	e, err := server.Listen(addr, nil)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	out := json.NewEncoder(os.Stdout)
	c, err := coordinator.New(coordinator.Config{Job: j, Dir: o.dir, Base: base, Log: logger(o), Hosts: []string{}, Progress: func(p monitor.Status) {
		_ = out.Encode(said{p.State, p.Version, p.Round, p.Connected, p.Dropped, p.Reason})
	}})
	if err != nil {
		return errors.Join(err, e.Listener.Close())
	}
	srv, err := server.New(c, server.Config{})
	if err != nil {
		return errors.Join(err, c.Close(), e.Listener.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, e) }()
	err = c.Run(ctx)
	cancel()
	return errors.Join(err, <-served, c.Close())
}

func tinyBase() (*model.Base, error) {
	tok, err := tokenizer.Train(slices.Values([]string{"the quick brown fox", "jumps over the lazy dog"}), 64)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	c := model.BERT(tok.VocabSize(), 32, 1, 2, 8)
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: make([]float32, model.Elements(s.Shape))})
	}
	base, err := model.NewBase(c, tensors, text, model.F32)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	return base, nil
}

// said is the coordinator's process speaking.
type said struct {
	State              string
	Version            int
	Round              uint64
	Connected, Dropped int
	Reason             string
}

// keeper keeps a coordinator's process running and kills it again and again.
type keeper struct {
	o    options
	addr string

	mu                          sync.Mutex
	last                        said      // by mu
	at                          time.Time // by mu: of last
	kills, committed, abandoned int       // by mu
	pid                         int       // by mu; 0: none runs
	quiet                       bool      // by mu: no kill any more
	lives                       int       // by mu
}

func newKeeper(o options) (*keeper, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("a free port: %w", err)
	}
	defer l.Close()
	return &keeper{o: o, addr: l.Addr().String(), at: time.Now()}, nil
}

func (k *keeper) token() string {
	return wire.Token{URL: "http://" + k.addr, Secret: []byte(secret)}.String()
}

// run starts the process whenever it is not there, until ctx ends.
func (k *keeper) run(ctx context.Context) error {
	for {
		if err := k.live(ctx); err != nil {
			return err
		}
	}
}

// live is one life of the process: nil if it was killed as intended.
func (k *keeper) live(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "-coordinate", k.addr, "-dir", k.o.dir,
		"-v="+fmt.Sprint(k.o.verbose), "-devices", fmt.Sprint(k.o.devices), "-rate", fmt.Sprint(k.o.rate))
	log, err := os.OpenFile(filepath.Join(k.o.dir, "coordinator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	k.mu.Lock()
	k.pid = cmd.Process.Pid
	k.lives++
	k.mu.Unlock()
	killed := false
	killer := time.AfterFunc(k.o.kill, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !k.quiet {
			killed = true
			k.kills++
			_ = cmd.Process.Kill() // one that is gone is found below
		}
	})
	defer killer.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var s said
		if json.Unmarshal(lines.Bytes(), &s) == nil { // the last line of a killed process may be cut
			k.hear(s)
		}
	}
	err = cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pid = 0
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case killed:
		return nil
	}
	return fmt.Errorf("the coordinator ended by itself: %w (its log: %s)", errors.Join(err, errEnded), log.Name())
}

func (k *keeper) hear(s said) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.State != k.last.State || s.Round != k.last.Round {
		k.at = time.Now()
		switch s.State {
		case monitor.StateCommitted:
			k.committed++
		case monitor.StateAbandoned:
			k.abandoned++
			fmt.Printf("        round %d abandoned: %s\n", s.Round, s.Reason)
		}
	}
	k.last = s
}

// moved is when the coordinator last entered a state.
func (k *keeper) moved() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

func (k *keeper) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%+v", k.last)
}

// calm ends the killing.
func (k *keeper) calm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.quiet = true
}

// process is the process's number and which life it is; 0: none runs.
func (k *keeper) process() (pid, life int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pid, k.lives
}

func (k *keeper) print(since time.Duration, f *fleet, m *memory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Printf("%6s %7d %10d %6d %5d %5d %10d %9d kB %5d kB\n", since.Round(time.Second), k.committed, k.abandoned,
		k.kills, f.gone, f.back, k.last.Connected, m.coordinator, m.devices)
}

// check reads what the coordinator left: every round is in the ledger once.
func (k *keeper) check() error {
	l, err := store.ReadLedger(k.o.dir)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	seen := map[uint64]bool{}
	for _, e := range l.Entries {
		if seen[e.Event.Round] {
			return fmt.Errorf("ledger: round %d occurs twice", e.Event.Round)
		}
		seen[e.Event.Round] = true
	}
	fmt.Printf("ledger: %d entries, chain holds; %d commits were seen\n", len(l.Entries), k.committed)
	return nil
}
