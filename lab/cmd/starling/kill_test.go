package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// process is a starling command of its own, as an operator would start it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of standard error

	mu  sync.Mutex
	log bytes.Buffer // by mu
	out bytes.Buffer // valid once ended
}

// built is the command, made once for all tests; TestMain removes it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "starling-built")
	if err != nil {
		return "", err
	}
	folderOfBuilt = dir
	binary := filepath.Join(dir, "starling")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
})

var folderOfBuilt string // "" where nothing was built

// build is the command as an operator has it.
func build(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func start(t *testing.T, binary string, args ...string) *process {
	t.Helper()
	return begin(t, exec.Command(binary, args...))
}

func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, lines: make(chan string, 4096)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for sc := bufio.NewScanner(stderr); sc.Scan(); {
			p.mu.Lock()
			fmt.Fprintln(&p.log, sc.Text())
			p.mu.Unlock()
			p.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() { p.cmd.Process.Kill(); p.end() })
	return p
}

// end waits for the process and everything it wrote.
func (p *process) end() error {
	watchdog.Wait(p.t, "the end of what the process writes", func() {
		for range p.lines {
		}
	}, p.said)
	if p.cmd.ProcessState != nil {
		return nil
	}
	return p.cmd.Wait()
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// await returns the first line of standard error that matches.
func (p *process) await(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	limit := time.After(2 * time.Minute)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("ended before %q:\n%s", pattern, p.said())
			}
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		case <-limit:
			t.Fatalf("no %q in two minutes:\n%s", pattern, p.said())
		}
	}
}

// freePort is an address of this machine that nobody listens on. It is below the ports that
// systems give to anyone who asks for any, so that nobody else is given it before it is used, or while
// its server is killed.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// A coordinator killed between rounds continues with the next one: devices come
// back by themselves, the ledger holds every round once, and what it released
// can be used.
func TestServeSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	binary := build(t)
	const devices, rounds = 4, 4
	data := filepath.Join(dir, "data")
	if out, err := exec.CommandContext(watchdog.Context(t), binary, "lab", "invoices", "--out", data, "--clients", fmt.Sprint(devices)).CombinedOutput(); err != nil {
		t.Fatalf("invoices: %v\n%s", err, out)
	}
	job := filepath.Join(dir, "job.yaml")
	text := fmt.Sprintf(`
name: killed
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: %d
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`, rounds, devices)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	serve := []string{"serve", "--json", "--job", job, "--dir", state, "--listen", freePort(t)}
	first := start(t, binary, serve...)
	token := first.await(t, `join with: starling join (\S+)`)[1]
	var joined []*process
	for i := range devices {
		joined = append(joined, start(t, binary, "join", "--trust-local", token, "--data", filepath.Join(data, fmt.Sprintf("train-%d.jsonl", i)),
			"--identity", filepath.Join(dir, fmt.Sprintf("identity-%d.pem", i)), "--cache", filepath.Join(dir, "cache"),
			"--accounts", filepath.Join(dir, "accounts")))
	}
	first.await(t, `^ *2/\d+ +committed`)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()
	before, err := store.ReadLedger(state)
	if err != nil {
		t.Fatalf("ledger after the kill: %v", err)
	}

	second := start(t, binary, serve...)
	second.await(t, `^ *[34]/\d+ +committed`)
	if err := second.end(); err != nil {
		t.Fatalf("second run: %v\n%s", err, second.said())
	}
	if strings.Contains(second.said(), "  1/") || strings.Contains(second.said(), "  2/") {
		t.Errorf("the second run did a round again:\n%s", second.said())
	}
	for i, p := range joined {
		if err := p.end(); err != nil {
			t.Errorf("device %d: %v\n%s", i, err, p.said())
		}
	}
	after, err := store.ReadLedger(state)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range before.Entries {
		if e.Hash != after.Entries[i].Hash {
			t.Errorf("ledger entry %d changed", i)
		}
	}
	seen := map[uint64]bool{}
	for _, e := range after.Entries {
		if seen[e.Event.Round] {
			t.Errorf("round %d is in the ledger twice", e.Event.Round)
		}
		seen[e.Event.Round] = true
	}
	if len(after.Entries) < rounds {
		t.Errorf("%d ledger entries for %d rounds", len(after.Entries), rounds)
	}
	var result struct {
		Checkpoint string
		Up         float64 `json:"bytes_up_per_device_round"`
	}
	if err := json.Unmarshal(second.out.Bytes(), &result); err != nil || result.Checkpoint == "" || result.Up < 500 {
		t.Fatalf("result %q: %v", second.out.String(), err)
	}
}
