package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// TestJoinNamedPeers: owners exchange identities, name each other, and take part in
// a job whose rosters say who is in them; by the program alone.
func TestJoinNamedPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("three devices train")
	}
	dir := t.TempDir()
	const devices = 3
	in := func(name string) string { return filepath.Join(dir, name) }
	ask := func(args ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		if code := run(watchdog.Context(t), args, strings.NewReader(""), &out, &said); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, said.String())
		}
		return strings.TrimSpace(out.String())
	}
	ask("lab", "invoices", "--out", in("data"), "--clients", fmt.Sprint(devices))
	var names strings.Builder
	names.WriteString("# the three of us\n\n")
	for i := range devices {
		fmt.Fprintf(&names, "%s  # device %d\n", ask("identity", "--identity", in(fmt.Sprintf("id-%d.pem", i))), i)
	}
	if err := os.WriteFile(in("peers"), []byte(names.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	job := `
name: known
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: 1
adapter: {rank_min: 1, rank_max: 1}
training: {steps: 1, batch: 2}
cohort: {population: 3, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0, identified: true}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`
	if err := os.WriteFile(in("job.yaml"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	token := make(chan string, 1)
	var mu sync.Mutex
	var said bytes.Buffer
	note := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if _, after, ok := strings.Cut(string(p), "starling join "); ok && len(token) == 0 {
			token <- strings.Fields(after)[0]
		}
		return said.Write(p)
	})
	all := func() string { mu.Lock(); defer mu.Unlock(); return said.String() }
	var wg sync.WaitGroup
	codes := make([]int, devices+1)
	wg.Go(func() {
		codes[devices] = run(ctx, []string{"serve", "--job", in("job.yaml"), "--dir", in("state"), "--listen", "127.0.0.1:0"}, strings.NewReader(""), &bytes.Buffer{}, note)
	})
	where := watchdog.Recv(t, "the join token", token, all)
	for i := range devices {
		wg.Go(func() {
			codes[i] = run(ctx, []string{"join", "--trust-local", where, "--data", in(fmt.Sprintf("data/train-%d.jsonl", i)), "--identity", in(fmt.Sprintf("id-%d.pem", i)),
				"--cache", in("cache"), "--accounts", in("accounts"), "--peers", "@" + in("peers")}, strings.NewReader(""), &bytes.Buffer{}, note)
		})
	}
	watchdog.Wait(t, "the job's end", wg.Wait, all)
	for i, code := range codes {
		if code != 0 {
			t.Errorf("%d: exit %d", i, code)
		}
	}
	if t.Failed() {
		t.Log(all())
	}
}
